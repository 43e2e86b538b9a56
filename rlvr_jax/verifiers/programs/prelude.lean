prelude
universe u v
-- Types that the compiler names; they prove nothing.
unsafe axiom lcErased : Type
unsafe axiom lcAny : Type

set_option bootstrap.inductiveCheckResultingUniverse false in
inductive PUnit : Sort u where
  | unit : PUnit

def id {α : Sort u} (a : α) : α := a

inductive True : Prop where
  | intro : True

inductive False : Prop

def Not (a : Prop) : Prop := a → False

inductive Eq {α : Sort u} : α → α → Prop where
  | refl (a : α) : Eq a a

noncomputable def Eq.ndrec.{u1, u2} {α : Sort u2} {a : α} {motive : α → Sort u1} (m : motive a)
    {b : α} (h : Eq a b) : motive b :=
  Eq.rec m h

inductive HEq : {α : Sort u} → α → {β : Sort u} → β → Prop where
  | refl (a : α) : HEq a a

theorem eq_of_heq {α : Sort u} {a a' : α} (h : HEq a a') : Eq a a' :=
  have (α β : Sort u) (a : α) (b : β) (h₁ : HEq a b) : (h : Eq α β) → Eq (Eq.rec (motive := fun x _ => x) a h) b :=
    HEq.rec (fun _ => Eq.refl _) h₁
  this α α a a' h (Eq.refl α)

theorem heq_of_eq {α : Sort u} {a a' : α} (h : Eq a a') : HEq a a' :=
  Eq.rec (motive := fun x _ => HEq a x) (HEq.refl a) h

structure And (a b : Prop) : Prop where
  intro ::
  left : a
  right : b

inductive Or (a b : Prop) : Prop where
  | inl (h : a) : Or a b
  | inr (h : b) : Or a b

structure Iff (a b : Prop) : Prop where
  intro ::
  mp : a → b
  mpr : b → a

inductive Exists {α : Sort u} (p : α → Prop) : Prop where
  | intro (w : α) (h : p w) : Exists p

structure PProd (α : Sort u) (β : Sort v) where
  fst : α
  snd : β

structure PSigma {α : Sort u} (β : α → Sort v) where
  fst : α
  snd : β fst

abbrev Unit : Type := PUnit

@[match_pattern] abbrev Unit.unit : Unit := PUnit.unit

set_option genCtorIdx false in
inductive Nat where
  | zero : Nat
  | succ (n : Nat) : Nat
theorem Or.elim {a b c : Prop} (h : Or a b) (f : a → c) (g : b → c) : c := Or.rec f g h
theorem False.elim {c : Prop} (h : False) : c := False.rec (fun _ => c) h
theorem Exists.elim {α : Sort u} {p : α → Prop} {b : Prop} (h : Exists p) (f : ∀ a, p a → b) : b := Exists.rec f h
theorem Eq.symm {α : Sort u} {a b : α} (h : Eq a b) : Eq b a :=
  Eq.rec (motive := fun x _ => Eq x a) (Eq.refl a) h
theorem Eq.trans {α : Sort u} {a b c : α} (h : Eq a b) (k : Eq b c) : Eq a c :=
  Eq.rec (motive := fun x _ => Eq a x) h k
theorem congrArg {α : Sort u} {β : Sort v} {a b : α} (f : α → β) (h : Eq a b) : Eq (f a) (f b) :=
  Eq.rec (motive := fun x _ => Eq (f a) (f x)) (Eq.refl (f a)) h

noncomputable def Nat.add (m n : Nat) : Nat := Nat.rec m (fun _ k => Nat.succ k) n
