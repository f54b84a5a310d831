(** The Brier score of a forecast p at an outcome: the sum of (p_i - 1 or 0)^2.

    Proved: if outcomes happen with probabilities y, the expected score is the squared distance of p from y
    plus a number that does not depend on p; so the score is least for the honest forecast and for
    no other.

    Assumed: there are n outcomes and y sums to 1; entries are real.

    Not said: anything of finite data. *)

From Coq Require Import Reals Lra Lia.
From Proofs Require Import sums.
Open Scope R_scope.

(** The expected Brier score of the forecast p, for outcomes with probabilities y. *)
Definition expected_brier (n : nat) (y p : nat -> R) : R :=
  \sum_(c < n) (y c * (\sum_(i < n) (p i - delta i c) ^ 2)).

Lemma brier_of_one_outcome n p c :
  (c < n)%nat -> \sum_(i < n) (p i - delta i c) ^ 2 = \sum_(i < n) p i ^ 2 - 2 * p c + 1.
Proof.
  intros Hc.
  rewrite (sum_ext n _ (fun i => p i ^ 2 - delta i c * (2 * p i) + delta i c * 1)).
  - rewrite sum_plus, sum_minus, !sum_delta by exact Hc; ring.
  - intros i _; unfold delta; destruct (Nat.eqb i c); ring.
Qed.

(** The expected Brier score is the squared distance from y plus 1 less the sum of y^2. *)
Theorem brier_decomposes n y p :
  \sum_(c < n) y c = 1 ->
  expected_brier n y p = \sum_(i < n) (p i - y i) ^ 2 + (1 - \sum_(i < n) y i ^ 2).
Proof.
  intros one; change (sum n y = 1) in one; unfold expected_brier.
  rewrite (sum_ext n _ (fun c => y c * (\sum_(i < n) p i ^ 2 + 1) - 2 * (y c * p c))).
  - rewrite sum_minus, sum_scale_r, sum_scale_l, one.
    rewrite (sum_ext n (fun i => (p i - y i) ^ 2) (fun i => p i ^ 2 - 2 * (y i * p i) + y i ^ 2)) by (intros; ring).
    rewrite sum_plus, sum_minus, sum_scale_l; ring.
  - intros c Hc; rewrite brier_of_one_outcome by exact Hc; ring.
Qed.

(** The Brier score is strictly proper: no forecast expects less than y itself, and no other as little. *)
Theorem brier_is_strictly_proper n y p :
  \sum_(c < n) y c = 1 ->
  expected_brier n y y <= expected_brier n y p
  /\ (expected_brier n y p = expected_brier n y y -> forall i, (i < n)%nat -> p i = y i).
Proof.
  intros one; rewrite !brier_decomposes by exact one.
  replace (\sum_(i < n) (y i - y i) ^ 2) with 0 by (symmetry; apply sum_zero; intros; ring).
  assert (terms : forall i, (i < n)%nat -> 0 <= (p i - y i) ^ 2) by (intros; apply pow2_ge_0).
  pose proof (sum_nonneg n _ terms) as nonneg.
  split; [lra|]; intros equal i Hi.
  assert (zero : \sum_(i < n) (p i - y i) ^ 2 = 0) by lra.
  pose proof (sum_nonneg_zero n _ terms zero i Hi) as gap; simpl in gap; nra.
Qed.
