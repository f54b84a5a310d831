(** The slope of a line that leaves a second cause out.

    Proved: where y = a + m x + m_z z + e, and e does not vary together with x, the slope of y over x alone is
    m plus m_z times the slope of z over x. If z does not vary together with x, the slope is m.

    Assumed: finitely many points, and an x that varies.

    Not said: that a law of this form holds for anything that was measured, which z there are, or how far a
    slope is from its expectation in a sample. That e does not vary together with x is exact for the rest of a
    least-squares fit on x and z; for noise it holds on average. *)

From Coq Require Import Reals Lra Lia.
From Coquelicot Require Import Coquelicot.
From Proofs Require Import sums.
Open Scope R_scope.

(** The mean of n numbers. *)
Definition mean (n : nat) (v : nat -> R) : R := sum n v / INR n.

(** How far number i is from the mean. *)
Definition off (n : nat) (v : nat -> R) (i : nat) : R := v i - mean n v.

(** How two lists vary together: the sum of the products of how far they are from their means. *)
Definition together (n : nat) (v w : nat -> R) : R := \sum_(i < n) (off n v i * off n w i).

(** The slope of the line that fits w over v by least squares. *)
Definition slope (n : nat) (v w : nat -> R) : R := together n v w / together n v v.

Lemma together_law n x z e a m mz y :
  (0 < n)%nat -> (forall i, (i < n)%nat -> y i = a + m * x i + mz * z i + e i) ->
  together n x y = m * together n x x + mz * together n x z + together n x e.
Proof.
  intros positive law.
  assert (INR n <> 0) by (apply not_0_INR; lia).
  assert (average : mean n y = a + m * mean n x + mz * mean n z + mean n e).
  { unfold mean. rewrite (sum_ext n y (fun i => a + m * x i + mz * z i + e i) law).
    rewrite !sum_plus, !sum_scale_l, sum_const. field; assumption. }
  unfold together.
  rewrite <- !sum_scale_l, <- !sum_plus.
  apply sum_ext; intros i Hi; unfold off; rewrite average, (law i Hi); ring.
Qed.

(** A slope that leaves z out has m_z times the slope of z over x too much. *)
Theorem slope_alone n x z e a m mz y :
  (0 < n)%nat -> (forall i, (i < n)%nat -> y i = a + m * x i + mz * z i + e i) ->
  together n x e = 0 -> together n x x <> 0 ->
  slope n x y = m + mz * slope n x z.
Proof.
  intros positive law apart varies. unfold slope.
  rewrite (together_law n x z e a m mz y positive law), apart. field; assumption.
Qed.

(** Where z does not vary together with x, as in a balanced design, the slope is m. *)
Theorem slope_balanced n x z e a m mz y :
  (0 < n)%nat -> (forall i, (i < n)%nat -> y i = a + m * x i + mz * z i + e i) ->
  together n x e = 0 -> together n x x <> 0 -> together n x z = 0 ->
  slope n x y = m.
Proof.
  intros positive law apart varies balanced.
  rewrite (slope_alone n x z e a m mz y positive law apart varies).
  unfold slope; rewrite balanced. field; assumption.
Qed.
