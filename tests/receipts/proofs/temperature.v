(** Softmax at a temperature tau > 0: p = softmax(z / tau).

    Proved: the ratio of two probabilities is e^((z_i - z_j) / tau), so their order is kept; and the
    entropy of p grows with tau at the rate Var_p(z) / tau^3, which is never negative.

    Assumed: the scores are real, there are n >= 1 of them, and tau is positive.

    Not said: the limits for tau to 0 and to infinity, or that a temperature fitted on some data makes a
    model's probabilities honest. *)

From Coq Require Import Reals Lra Lia.
From Coquelicot Require Import Coquelicot.
From Proofs Require Import sums gibbs softmax.
Open Scope R_scope.

(** Softmax at the temperature tau. *)
Definition softmax_at (n : nat) (z : nat -> R) (tau : R) : nat -> R :=
  softmax n (fun i => z i / tau).

(** The mean of the scores under probabilities p. *)
Definition mean_score (n : nat) (p z : nat -> R) : R := \sum_(i < n) (p i * z i).

(** The variance of the scores under probabilities p. *)
Definition variance_score (n : nat) (p z : nat -> R) : R :=
  \sum_(i < n) (p i * (z i - mean_score n p z) ^ 2).

(** The logarithm of the ratio of two probabilities is the gap of their scores over tau, and the order of
    the scores is the order of the probabilities. *)
Theorem temperature_keeps_the_order n z tau i j :
  (i < n)%nat -> (j < n)%nat -> 0 < tau ->
  ln (softmax_at n z tau i / softmax_at n z tau j) = (z i - z j) / tau
  /\ (z i < z j <-> softmax_at n z tau i < softmax_at n z tau j).
Proof.
  intros Hi Hj Htau.
  pose proof (softmax_ratio n (fun k => z k / tau) i j Hi Hj) as ratio; fold (softmax_at n z tau) in ratio.
  pose proof (softmax_positive n (fun k => z k / tau) j Hj) as positive; fold (softmax_at n z tau) in positive.
  assert (product : softmax_at n z tau i = exp ((z i - z j) / tau) * softmax_at n z tau j).
  { replace ((z i - z j) / tau) with (z i / tau - z j / tau) by (field; lra).
    rewrite <- ratio; field; lra. }
  split; [rewrite ratio, ln_exp; field; lra|].
  rewrite product; set (p := softmax_at n z tau j) in *; set (g := (z i - z j) / tau).
  assert (gap : z i - z j = g * tau) by (unfold g; field; lra).
  split; intros less.
  - assert (g < 0) by nra.
    assert (exp g < 1) by (rewrite <- exp_0; apply exp_increasing; assumption); nra.
  - destruct (Rlt_le_dec g 0) as [below | above]; [nra|].
    assert (1 <= exp g); [|nra].
    rewrite <- exp_0; destruct above as [above | <-]; [apply Rlt_le, exp_increasing, above | lra].
Qed.

Lemma derive_total n z s :
  is_derive (fun t => \sum_(i < n) exp (t * z i)) s (\sum_(i < n) (z i * exp (s * z i))).
Proof.
  apply (derive_sum n (fun i t => exp (t * z i))); intros i _; auto_derive; [exact I | ring].
Qed.

Lemma derive_first_moment n z s :
  is_derive (fun t => \sum_(i < n) (z i * exp (t * z i))) s (\sum_(i < n) (z i ^ 2 * exp (s * z i))).
Proof.
  apply (derive_sum n (fun i t => z i * exp (t * z i))); intros i _; auto_derive; [exact I | ring].
Qed.

Lemma softmax_at_coldness n z s i : softmax n (fun k => s * z k) i = exp (s * z i) / (\sum_(k < n) exp (s * z k)).
Proof. reflexivity. Qed.

Lemma entropy_of_softmax n z s :
  (0 < n)%nat ->
  entropy n (softmax n (fun k => s * z k))
  = ln (\sum_(k < n) exp (s * z k)) - s * ((\sum_(k < n) (z k * exp (s * z k))) / (\sum_(k < n) exp (s * z k))).
Proof.
  intros Hn; pose proof (exps_positive n (fun k => s * z k) Hn) as positive.
  pose proof (softmax_sums_to_one n (fun k => s * z k) Hn) as one.
  set (p := softmax n (fun k => s * z k)) in *; change (sum n p = 1) in one.
  set (total := \sum_(k < n) exp (s * z k)) in *.
  unfold entropy.
  rewrite (sum_ext n (fun i => p i * ln (p i)) (fun i => s / total * (z i * exp (s * z i)) - p i * ln total)).
  - rewrite sum_minus, sum_scale_l, sum_scale_r, one; field; lra.
  - intros i Hi; unfold p at 2; rewrite log_softmax by exact Hi.
    unfold log_sum_exp; fold total; unfold p; rewrite softmax_at_coldness; fold total; field; lra.
Qed.

Lemma variance_by_squares n p z :
  \sum_(i < n) p i = 1 ->
  variance_score n p z = \sum_(i < n) (p i * z i ^ 2) - mean_score n p z ^ 2.
Proof.
  intros one; change (sum n p = 1) in one; unfold variance_score; set (mu := mean_score n p z).
  rewrite (sum_ext n _ (fun i => p i * z i ^ 2 - 2 * mu * (p i * z i) + mu ^ 2 * p i)) by (intros; ring).
  rewrite sum_plus, sum_minus, !sum_scale_l.
  change (\sum_(i < n) (p i * z i)) with mu; change (\sum_(i < n) p i) with (sum n p).
  replace (sum n (fun i => p i)) with (sum n p) by reflexivity; rewrite one; ring.
Qed.

Lemma derive_entropy_in_coldness n z s :
  (0 < n)%nat ->
  is_derive (fun t => entropy n (softmax n (fun k => t * z k))) s
    (- s * variance_score n (softmax n (fun k => s * z k)) z).
Proof.
  intros Hn.
  set (total := fun t => \sum_(k < n) exp (t * z k)).
  set (first := fun t => \sum_(k < n) (z k * exp (t * z k))).
  assert (positive : forall t, 0 < total t) by (intros t; apply (exps_positive n (fun k => t * z k) Hn)).
  apply (is_derive_ext (fun t => ln (total t) - t * (first t / total t))).
  { intros t; symmetry; apply entropy_of_softmax, Hn. }
  rewrite variance_by_squares by (apply softmax_sums_to_one, Hn).
  set (second := \sum_(k < n) (z k ^ 2 * exp (s * z k))).
  replace (mean_score n (softmax n (fun k => s * z k)) z) with (first s / total s).
  2: { unfold mean_score, first; rewrite <- sum_divide; apply sum_ext; intros i _.
       rewrite softmax_at_coldness; fold (total s); field; pose proof (positive s); lra. }
  replace (\sum_(i < n) (softmax n (fun k => s * z k) i * z i ^ 2)) with (second / total s).
  2: { unfold second; rewrite <- sum_divide; apply sum_ext; intros i _.
       rewrite softmax_at_coldness; fold (total s); field; pose proof (positive s); lra. }
  pose proof (positive s) as here.
  evar_last.
  - apply (is_derive_minus (fun t => ln (total t)) (fun t => t * (first t / total t))).
    + apply (is_derive_comp ln total); [apply is_derive_ln, here | apply derive_total].
    + apply (is_derive_mult (fun t => t) (fun t => first t / total t)).
      * apply (is_derive_id s).
      * apply is_derive_div; [apply derive_first_moment | apply derive_total | lra].
      * apply Rmult_comm.
  - fold (first s); fold second.
    unfold minus, plus, opp, scal, one, mult; simpl; unfold mult; simpl; field; lra.
Qed.

(** Entropy grows with the temperature at the rate Var_p(z) / tau^3, which is never negative. *)
Theorem entropy_rises_with_temperature n z tau :
  (0 < n)%nat -> 0 < tau ->
  is_derive (fun t => entropy n (softmax_at n z t)) tau
    (variance_score n (softmax_at n z tau) z / tau ^ 3)
  /\ 0 <= variance_score n (softmax_at n z tau) z / tau ^ 3.
Proof.
  intros Hn Htau.
  assert (same : forall t, softmax_at n z t = softmax n (fun k => / t * z k)).
  { intros t; unfold softmax_at; f_equal.
    apply FunctionalExtensionality.functional_extensionality; intros k; unfold Rdiv; ring. }
  split.
  - apply (is_derive_ext (fun t => entropy n (softmax n (fun k => / t * z k)))).
    { intros t; rewrite same; reflexivity. }
    evar_last.
    + apply (is_derive_comp (fun s => entropy n (softmax n (fun k => s * z k))) Rinv).
      * apply derive_entropy_in_coldness, Hn.
      * apply (is_derive_inv (fun t => t)); [apply (is_derive_id tau) | lra].
    + rewrite same; unfold scal, one; simpl; unfold mult; simpl; field; lra.
  - apply Rmult_le_pos; [|apply Rlt_le, Rinv_0_lt_compat, pow_lt, Htau].
    apply sum_nonneg; intros i Hi; apply Rmult_le_pos; [apply Rlt_le, softmax_positive, Hi | apply pow2_ge_0].
Qed.
