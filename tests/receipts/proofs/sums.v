(** Finite sums over the indices 0, 1, …, n - 1.

    A vector of n reals is a function from the natural numbers to the reals of which only the
    values at 0, …, n - 1 count. The sum of its entries is written \sum_(i < n) v i. The other
    files are built on the lemmas here; no formula of the course rests on this file alone. *)

From Coq Require Import Reals Lra Lia.
From Coquelicot Require Import Coquelicot.
Open Scope R_scope.

(** The sum of f 0, f 1, …, f (n - 1); an empty sum is 0. *)
Fixpoint sum (n : nat) (f : nat -> R) : R :=
  match n with
  | O => 0
  | S m => sum m f + f m
  end.

Notation "\sum_ ( i < n ) F" := (sum n (fun i => F))
  (at level 41, i name, n at level 50, F at level 41, format "\sum_ ( i  <  n )  F") : R_scope.

Lemma sum_ext n f g : (forall i, (i < n)%nat -> f i = g i) -> sum n f = sum n g.
Proof.
  induction n as [|n IH]; simpl; intros same; [reflexivity|].
  rewrite IH, (same n); [reflexivity | lia | intros i Hi; apply same; lia].
Qed.

Lemma sum_plus n f g : \sum_(i < n) (f i + g i) = sum n f + sum n g.
Proof. induction n as [|n IH]; simpl; [|rewrite IH]; ring. Qed.

Lemma sum_minus n f g : \sum_(i < n) (f i - g i) = sum n f - sum n g.
Proof. induction n as [|n IH]; simpl; [|rewrite IH]; ring. Qed.

Lemma sum_opp n f : \sum_(i < n) (- f i) = - sum n f.
Proof. induction n as [|n IH]; simpl; [|rewrite IH]; ring. Qed.

Lemma sum_scale_l n c f : \sum_(i < n) (c * f i) = c * sum n f.
Proof. induction n as [|n IH]; simpl; [|rewrite IH]; ring. Qed.

Lemma sum_scale_r n c f : \sum_(i < n) (f i * c) = sum n f * c.
Proof. induction n as [|n IH]; simpl; [|rewrite IH]; ring. Qed.

Lemma sum_divide n c f : \sum_(i < n) (f i / c) = sum n f / c.
Proof. apply sum_scale_r. Qed.

Lemma sum_const n c : \sum_(i < n) c = INR n * c.
Proof.
  induction n as [|n IH]; [simpl; ring|].
  rewrite S_INR; simpl; rewrite IH; ring.
Qed.

Lemma sum_zero n f : (forall i, (i < n)%nat -> f i = 0) -> sum n f = 0.
Proof. intros zero. rewrite (sum_ext n f (fun _ => 0) zero), sum_const; ring. Qed.

Lemma sum_swap m n f : \sum_(i < m) (\sum_(j < n) f i j) = \sum_(j < n) (\sum_(i < m) f i j).
Proof.
  induction m as [|m IH]; simpl.
  - symmetry; apply sum_zero; reflexivity.
  - rewrite IH, sum_plus; reflexivity.
Qed.

Lemma sum_le n f g : (forall i, (i < n)%nat -> f i <= g i) -> sum n f <= sum n g.
Proof.
  induction n as [|n IH]; simpl; intros le; [lra|].
  apply Rplus_le_compat; [apply IH; intros i Hi|]; apply le; lia.
Qed.

Lemma sum_nonneg n f : (forall i, (i < n)%nat -> 0 <= f i) -> 0 <= sum n f.
Proof.
  intros nonneg. rewrite <- (sum_zero n (fun _ => 0)) by reflexivity.
  apply sum_le, nonneg.
Qed.

Lemma sum_positive n f : (0 < n)%nat -> (forall i, (i < n)%nat -> 0 < f i) -> 0 < sum n f.
Proof.
  destruct n as [|n]; [lia|]; simpl; intros _ positive.
  assert (0 <= sum n f) by (apply sum_nonneg; intros i Hi; apply Rlt_le, positive; lia).
  assert (0 < f n) by (apply positive; lia).
  lra.
Qed.

(** One entry of a vector without negative entries is at most the sum. *)
Lemma sum_ge_entry n f i :
  (forall j, (j < n)%nat -> 0 <= f j) -> (i < n)%nat -> f i <= sum n f.
Proof.
  induction n as [|n IH]; simpl; intros nonneg Hi; [lia|].
  assert (0 <= sum n f) by (apply sum_nonneg; intros j Hj; apply nonneg; lia).
  destruct (Nat.eq_dec i n) as [->|other]; [lra|].
  assert (f i <= sum n f) by (apply IH; [intros j Hj; apply nonneg|]; lia).
  assert (0 <= f n) by (apply nonneg; lia).
  lra.
Qed.

(** A sum of terms without sign is zero only if every term is zero. *)
Lemma sum_nonneg_zero n f :
  (forall i, (i < n)%nat -> 0 <= f i) -> sum n f = 0 -> forall i, (i < n)%nat -> f i = 0.
Proof.
  intros nonneg zero i Hi.
  pose proof (sum_ge_entry n f i nonneg Hi). pose proof (nonneg i Hi). lra.
Qed.

(** 1 where the indices agree, 0 elsewhere: Kronecker's delta. *)
Definition delta (i j : nat) : R := if Nat.eqb i j then 1 else 0.

Lemma delta_same i : delta i i = 1.
Proof. unfold delta; rewrite Nat.eqb_refl; reflexivity. Qed.

Lemma delta_other i j : i <> j -> delta i j = 0.
Proof. intros other; unfold delta; apply Nat.eqb_neq in other; rewrite other; reflexivity. Qed.

Lemma delta_sym i j : delta i j = delta j i.
Proof. unfold delta; rewrite Nat.eqb_sym; reflexivity. Qed.

Lemma sum_delta n f j : (j < n)%nat -> \sum_(i < n) (delta i j * f i) = f j.
Proof.
  induction n as [|n IH]; simpl; intros Hj; [lia|].
  destruct (Nat.eq_dec j n) as [->|other].
  - rewrite delta_same, (sum_zero n); [ring|].
    intros i Hi; rewrite delta_other; [ring | lia].
  - rewrite IH, (delta_other n); [ring | lia | lia].
Qed.

(** The vector v with its entry j replaced by t: what a partial derivative varies. *)
Definition with_entry (v : nat -> R) (j : nat) (t : R) (i : nat) : R :=
  if Nat.eqb i j then t else v i.

Lemma with_entry_same v j i : with_entry v j (v j) i = v i.
Proof. unfold with_entry; destruct (Nat.eqb_spec i j) as [->|]; reflexivity. Qed.

Lemma derive_with_entry v i j x : is_derive (fun t => with_entry v j t i) x (delta i j).
Proof.
  unfold with_entry, delta; destruct (Nat.eqb i j).
  - apply (is_derive_id x).
  - apply (is_derive_const (v i) x).
Qed.

Lemma derive_sum n f f' x :
  (forall i, (i < n)%nat -> is_derive (f i) x (f' i)) -> is_derive (fun t => \sum_(i < n) f i t) x (sum n f').
Proof.
  induction n as [|n IH]; simpl; intros each.
  - apply (is_derive_const 0 x).
  - apply (is_derive_plus (fun t => \sum_(i < n) f i t) (f n)).
    + apply IH; intros i Hi; apply each; lia.
    + apply each; lia.
Qed.

(** Coquelicot states some equations of reals in a structure that [ring] does not see through. *)
Ltac in_reals := match goal with |- @eq _ ?a ?b => change (@eq R a b) end.
