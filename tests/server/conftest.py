"""The small base model of these tests."""

import pytest
import tinker_requests


@pytest.fixture(scope="package")
def brackets():
    return tinker_requests.brackets()
