"""Objects of arrays: some are fields, all others are declared by name."""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any, ClassVar, Self


class Recorded:
    """Base of frozen dataclasses with fields of arrays and a mapping `records`."""

    __dataclass_fields__: ClassVar[dict[str, Any]]
    records: Mapping[str, Any]

    @classmethod
    @functools.cache
    def fields(cls) -> frozenset[str]:
        """The names of the fields, without `records`."""
        return frozenset(entry.name for entry in dataclasses.fields(cls)) - {"records"}

    def get(self, name: str) -> Any:
        """A field or record by name; None for a record that nothing wrote."""
        return getattr(self, name) if name in self.fields() else self.records.get(name)

    @property
    def arrays(self) -> dict[str, Any]:
        """All arrays by name: fields that are not None, and records."""
        known = {name: getattr(self, name) for name in sorted(self.fields())}
        return {name: x for name, x in known.items() if x is not None} | {**self.records}

    def replace(self, **changes: Any) -> Self:
        """The object with other fields and records; None removes a record.

        Raises:
          ValueError: a record that is not declared, or of another kind or shape than declared.
        """
        fields = {name: changes.pop(name) for name in self.fields() & changes.keys()}
        records = {**self.records} | changes
        fields["records"] = {name: array for name, array in records.items() if array is not None}
        found = dataclasses.replace(self, **fields)
        if changes:
            found.check({name: array for name, array in changes.items() if array is not None})
        return found

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, Any]) -> Self:
        """An object of fields and records by name; see `arrays`."""
        fields = {name: arrays[name] for name in cls.fields() & arrays.keys()}
        others = {name: array for name, array in arrays.items() if name not in cls.fields()}
        return cls(**fields).replace(**others)

    def check(self, records: Mapping[str, Any]) -> None:
        """Refuses records that are not as declared."""
        raise NotImplementedError
