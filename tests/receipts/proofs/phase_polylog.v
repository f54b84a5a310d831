(** The partition function of a power law on the distances 1 .. N, and what a finite N forbids.

    Proved: the partition function falls strictly as gamma grows; the slope of its logarithm is minus the mean of
    ln d, and the second derivative is the variance; this variance is positive, and never above (ln N)^2 / 4,
    whatever gamma is; at gamma = 1 the partition function lies between ln (N + 1) and 1 + ln N; what a sum with an
    exponential cut-off leaves out after M terms is at most a geometric series.

    Assumed: N is whole, at least 1 or 2 as stated, and gamma is real; the definitions are those of
    power_law_fisher.v. Of the cut-off sum, 0 <= z < 1 and gamma >= 0.

    Not said: anything of N to infinity, of where the variance is largest, or of a trained model. *)

From Coq Require Import Reals Lra Lia.
From Coquelicot Require Import Coquelicot.
From Proofs Require Import sums gibbs power_law_fisher.
Open Scope R_scope.

Lemma distance_least i : 1 <= distance i.
Proof. unfold distance; rewrite S_INR; pose proof (pos_INR i); lra. Qed.

Lemma log_distance_nonneg i : 0 <= ln (distance i).
Proof. rewrite <- ln_1; apply ln_le; [lra | apply distance_least]. Qed.

Lemma log_distance_most N i : (i < N)%nat -> ln (distance i) <= ln (INR N).
Proof.
  intros Hi; apply ln_le; [pose proof (distance_least i); lra|].
  unfold distance; apply le_INR; lia.
Qed.

Lemma power_falls i g h : g < h -> Rpower (distance i) (- h) <= Rpower (distance i) (- g).
Proof.
  intros less; unfold Rpower; pose proof (log_distance_nonneg i) as unsigned.
  destruct (Req_dec (ln (distance i)) 0) as [-> | nonzero]; [rewrite !Rmult_0_r; lra|].
  apply Rlt_le, exp_increasing; nra.
Qed.

(** With two distances or more, the partition function falls strictly as gamma grows. *)
Theorem partition_falls N g h : (1 < N)%nat -> g < h -> partition N h < partition N g.
Proof.
  intros HN less; unfold partition.
  assert (strict : 0 < Rpower (distance 1) (- g) - Rpower (distance 1) (- h)).
  { assert (0 < ln (distance 1)).
    { rewrite <- ln_1; apply ln_increasing; [lra|]; unfold distance; simpl; lra. }
    assert (Rpower (distance 1) (- h) < Rpower (distance 1) (- g)) by (unfold Rpower; apply exp_increasing; nra).
    lra. }
  pose proof (sum_ge_entry N (fun i => Rpower (distance i) (- g) - Rpower (distance i) (- h)) 1) as entry.
  rewrite sum_minus in entry; cbv beta in entry.
  specialize (entry ltac:(intros j _; pose proof (power_falls j g h less); lra) HN); lra.
Qed.

(** The slope of ln Z in gamma is minus the mean of ln d. *)
Theorem log_partition_slope N gamma :
  (0 < N)%nat -> is_derive (fun g => ln (partition N g)) gamma (- mean_log N gamma).
Proof.
  intros HN; pose proof (partition_positive N gamma HN); evar_last.
  - apply (is_derive_comp ln (partition N)); [apply is_derive_ln; assumption | apply derive_partition, HN].
  - in_reals; unfold scal; simpl; unfold mult; simpl; field; lra.
Qed.

(** The second derivative of ln Z in gamma is the variance of ln d. *)
Theorem log_partition_curvature N gamma :
  (0 < N)%nat -> Derive_n (fun g => ln (partition N g)) 2 gamma = variance_log N gamma.
Proof.
  intros HN; simpl.
  rewrite (Derive_ext _ (fun g => - mean_log N g)).
  - rewrite Derive_opp, (is_derive_unique _ _ _ (mean_log_falls N gamma HN)); ring.
  - intros g; apply is_derive_unique, log_partition_slope, HN.
Qed.

(** For every gamma the variance of ln d is at most a quarter of (ln N)^2. *)
Theorem variance_is_bounded N gamma :
  (0 < N)%nat -> 0 <= variance_log N gamma <= ln (INR N) ^ 2 / 4.
Proof.
  intros HN; destruct (power_law_is_a_distribution N gamma HN) as [positive one]; split.
  - unfold variance_log, expectation; apply sum_nonneg; intros i _.
    apply Rmult_le_pos; [apply Rlt_le, positive | apply pow2_ge_0].
  - rewrite (variance_by_squares N gamma HN).
    assert (squares : expectation N gamma (fun i => ln (distance i) ^ 2) <= ln (INR N) * mean_log N gamma).
    { unfold mean_log, expectation; rewrite <- sum_scale_l; apply sum_le; intros i Hi.
      pose proof (log_distance_nonneg i); pose proof (log_distance_most N i Hi); pose proof (positive i).
      assert (0 <= power_law N gamma i * ln (distance i)) by (apply Rmult_le_pos; lra).
      nra. }
    pose proof (pow2_ge_0 (mean_log N gamma - ln (INR N) / 2)); nra.
Qed.

(** With two distances or more the variance of ln d is positive. *)
Theorem variance_is_positive N gamma : (1 < N)%nat -> 0 < variance_log N gamma.
Proof.
  intros HN; destruct (power_law_is_a_distribution N gamma ltac:(lia)) as [positive _].
  pose proof (fun i => sum_ge_entry N (fun i => power_law N gamma i * (ln (distance i) - mean_log N gamma) ^ 2) i
    ltac:(intros j _; apply Rmult_le_pos; [apply Rlt_le, positive | apply pow2_ge_0])) as entry.
  change (sum N _) with (variance_log N gamma) in entry; cbv beta in entry.
  set (mu := mean_log N gamma) in *.
  destruct (Req_dec mu 0) as [zero | nonzero].
  - specialize (entry 1%nat HN); pose proof (positive 1%nat).
    assert (0 < ln (distance 1)) by (rewrite <- ln_1; apply ln_increasing; [lra|]; unfold distance; simpl; lra).
    assert (0 < power_law N gamma 1 * (ln (distance 1) - mu) ^ 2) by (apply Rmult_lt_0_compat; [assumption | apply pow_lt; lra]).
    lra.
  - specialize (entry 0%nat ltac:(lia)); pose proof (positive 0%nat).
    assert (first : ln (distance 0) = 0) by (unfold distance; simpl; apply ln_1).
    rewrite first in entry.
    assert (0 < (0 - mu) ^ 2) by (apply pow2_gt_0; lra).
    assert (0 < power_law N gamma 0 * (0 - mu) ^ 2) by (apply Rmult_lt_0_compat; assumption).
    lra.
Qed.

Lemma power_of_minus_one i : Rpower (distance i) (- (1)) = / distance i.
Proof. pose proof (distance_least i); rewrite Rpower_Ropp, Rpower_1 by lra; reflexivity. Qed.

Lemma log_step n : / INR (S (S n)) <= ln (INR (S (S n))) - ln (INR (S n)) <= / INR (S n).
Proof.
  assert (0 < INR (S n)) by (apply lt_0_INR; lia).
  assert (0 < INR (S (S n))) by (apply lt_0_INR; lia).
  assert (next : INR (S (S n)) = INR (S n) + 1) by apply S_INR.
  split.
  - assert (below : ln (INR (S n) / INR (S (S n))) <= INR (S n) / INR (S (S n)) - 1)
      by (apply ln_below_line, Rdiv_lt_0_compat; assumption).
    rewrite ln_div in below by assumption.
    replace (INR (S n) / INR (S (S n)) - 1) with (- / INR (S (S n))) in below by (rewrite next; field; lra); lra.
  - assert (below : ln (INR (S (S n)) / INR (S n)) <= INR (S (S n)) / INR (S n) - 1)
      by (apply ln_below_line, Rdiv_lt_0_compat; assumption).
    rewrite ln_div in below by assumption.
    replace (INR (S (S n)) / INR (S n) - 1) with (/ INR (S n)) in below by (rewrite next; field; lra); lra.
Qed.

(** At gamma = 1 the partition function is a harmonic number, between ln (N + 1) and 1 + ln N. *)
Theorem harmonic_bounds N : (0 < N)%nat -> ln (INR (S N)) <= partition N 1 <= 1 + ln (INR N).
Proof.
  destruct N as [|n]; [lia|]; intros _; unfold partition.
  induction n as [|n [low high]].
  - simpl sum; rewrite power_of_minus_one; unfold distance; simpl; rewrite ln_1.
    pose proof (ln_below_line 2 ltac:(lra)); replace (1 + 1) with 2 by ring; lra.
  - change (sum (S (S n)) _) with
      (\sum_(i < S n) Rpower (distance i) (- (1)) + Rpower (distance (S n)) (- (1))).
    rewrite power_of_minus_one; unfold distance at 2 4.
    pose proof (log_step n); pose proof (log_step (S n)); lra.
Qed.

Lemma geometric_bound z k : 0 <= z < 1 -> \sum_(i < k) z ^ i <= / (1 - z).
Proof.
  intros Hz.
  assert (exact : (\sum_(i < k) z ^ i) * (1 - z) = 1 - z ^ k).
  { induction k as [|k IH]; simpl; [ring|]; rewrite Rmult_plus_distr_r, IH; ring. }
  pose proof (pow_le z k (proj1 Hz)).
  apply (Rmult_le_reg_r (1 - z)); [lra|]; rewrite exact, Rinv_l; lra.
Qed.

(** After M terms of the sum of z^r r^(-gamma), any number of further ones add at most
    z^(M + 1) (M + 1)^(-gamma) / (1 - z). *)
Theorem cut_off_tail M k z gamma :
  0 <= z < 1 -> 0 <= gamma ->
  \sum_(i < k) (z ^ (S M + i) * Rpower (INR (S M + i)) (- gamma))
  <= z ^ S M * Rpower (INR (S M)) (- gamma) / (1 - z).
Proof.
  intros Hz Hgamma.
  set (top := z ^ S M * Rpower (INR (S M)) (- gamma)).
  assert (0 <= top) by (apply Rmult_le_pos; [apply pow_le; lra | apply Rlt_le, exp_pos]).
  apply Rle_trans with (\sum_(i < k) (top * z ^ i)).
  - apply sum_le; intros i _; unfold top; rewrite pow_add.
    assert (0 <= z ^ S M) by (apply pow_le; lra).
    assert (0 <= z ^ i) by (apply pow_le; lra).
    assert (falls : Rpower (INR (S M + i)) (- gamma) <= Rpower (INR (S M)) (- gamma)).
    { unfold Rpower.
      assert (ln (INR (S M)) <= ln (INR (S M + i))) by (apply ln_le; [apply lt_0_INR; lia | apply le_INR; lia]).
      destruct (Req_dec (- gamma * ln (INR (S M + i))) (- gamma * ln (INR (S M)))) as [-> | other]; [lra|].
      apply Rlt_le, exp_increasing; nra. }
    replace (z ^ S M * Rpower (INR (S M)) (- gamma) * z ^ i) with (z ^ S M * z ^ i * Rpower (INR (S M)) (- gamma)) by ring.
    apply Rmult_le_compat_l; [apply Rmult_le_pos; assumption | exact falls].
  - rewrite sum_scale_l; unfold Rdiv; apply Rmult_le_compat_l; [assumption | apply geometric_bound, Hz].
Qed.
