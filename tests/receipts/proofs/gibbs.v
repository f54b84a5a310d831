(** Gibbs' inequality, and what follows for entropy and cross-entropy, on a finite set.

    Proved: KL(p, q) >= 0, and 0 only for p = q; cross-entropy is entropy plus divergence, so it is least
    for the honest forecast and for no other; entropy lies between 0 and ln n.

    Assumed: the set has n elements; the distributions sum to 1, and q is positive everywhere. p may have
    zeros; there p ln p and p ln(p / q) are 0.

    Not said: anything of finite data, where the average over a sample stands for the expectation, or that a model
    trained by cross-entropy is honest. *)

From Coq Require Import Reals Lra Lia.
From Coquelicot Require Import Rcomplements.
From Proofs Require Import sums.
Open Scope R_scope.

(** Numbers without sign that sum to 1. *)
Definition distribution (n : nat) (p : nat -> R) : Prop :=
  (forall i, (i < n)%nat -> 0 <= p i) /\ \sum_(i < n) p i = 1.

(** The Kullback-Leibler divergence of p from q. *)
Definition kl (n : nat) (p q : nat -> R) : R := \sum_(i < n) (p i * ln (p i / q i)).

(** The entropy of p, in nats. *)
Definition entropy (n : nat) (p : nat -> R) : R := - (\sum_(i < n) (p i * ln (p i))).

(** The cross-entropy of the forecast p at what happens with probabilities y. *)
Definition cross_entropy (n : nat) (y p : nat -> R) : R := - (\sum_(i < n) (y i * ln (p i))).

Lemma ln_below_line x : 0 < x -> ln x <= x - 1.
Proof. intros Hx; pose proof (exp_ineq1_le (ln x)); rewrite exp_ln in * by exact Hx; lra. Qed.

Lemma ln_touches_line x : 0 < x -> ln x = x - 1 -> x = 1.
Proof.
  intros Hx touches.
  destruct (Req_dec (ln x) 0) as [zero | nonzero].
  - rewrite zero in touches; lra.
  - pose proof (exp_ineq1 (ln x) nonzero); rewrite exp_ln in * by exact Hx; lra.
Qed.

Lemma gibbs_term p q : 0 <= p -> 0 < q -> 0 <= p * ln (p / q) - (p - q).
Proof.
  intros [Hp | <-] Hq; [|rewrite Rmult_0_l; lra].
  pose proof (ln_below_line (q / p) ltac:(apply Rdiv_lt_0_compat; assumption)) as line.
  rewrite ln_div in * by assumption.
  apply (Rmult_le_compat_l p) in line; [|lra].
  replace (p * (q / p - 1)) with (q - p) in line by (field; lra); lra.
Qed.

Lemma gibbs_term_zero p q : 0 <= p -> 0 < q -> p * ln (p / q) - (p - q) = 0 -> p = q.
Proof.
  intros [Hp | <-] Hq zero; [|rewrite Rmult_0_l in zero; lra].
  assert (q / p = 1) as same.
  { apply ln_touches_line; [apply Rdiv_lt_0_compat; assumption|].
    rewrite ln_div in * by assumption.
    apply (Rmult_eq_reg_l p); [|lra].
    replace (p * (q / p - 1)) with (q - p) by (field; lra); lra. }
  apply (Rmult_eq_reg_r (/ p)); [|apply Rinv_neq_0_compat; lra].
  rewrite Rinv_r by lra; symmetry; exact same.
Qed.

Lemma kl_as_terms n p q :
  sum n p = 1 -> sum n q = 1 -> kl n p q = \sum_(i < n) (p i * ln (p i / q i) - (p i - q i)).
Proof.
  intros Hp Hq; rewrite sum_minus, sum_minus.
  change (\sum_(i < n) p i) with (sum n p); change (\sum_(i < n) q i) with (sum n q).
  unfold kl; rewrite Hp, Hq; ring.
Qed.

(** Gibbs' inequality: KL(p, q) >= 0, and it is 0 only if p and q are the same. *)
Theorem gibbs_inequality n p q :
  distribution n p -> distribution n q -> (forall i, (i < n)%nat -> 0 < q i) ->
  0 <= kl n p q /\ (kl n p q = 0 <-> forall i, (i < n)%nat -> p i = q i).
Proof.
  intros [Hp onep] [_ oneq] positive.
  assert (terms : forall i, (i < n)%nat -> 0 <= p i * ln (p i / q i) - (p i - q i)).
  { intros i Hi; apply gibbs_term; [apply Hp | apply positive]; exact Hi. }
  rewrite (kl_as_terms n p q onep oneq); split; [|split].
  - apply sum_nonneg, terms.
  - intros zero i Hi; apply gibbs_term_zero; [apply Hp, Hi | apply positive, Hi|].
    exact (sum_nonneg_zero n _ terms zero i Hi).
  - intros same; apply sum_zero; intros i Hi; rewrite (same i Hi).
    unfold Rdiv; rewrite Rinv_r, ln_1; [ring|].
    pose proof (positive i Hi); lra.
Qed.

(** Cross-entropy is entropy plus divergence. *)
Theorem cross_entropy_is_entropy_plus_kl n y p :
  (forall i, (i < n)%nat -> 0 <= y i) -> (forall i, (i < n)%nat -> 0 < p i) ->
  cross_entropy n y p = entropy n y + kl n y p.
Proof.
  intros Hy Hp; unfold cross_entropy, entropy, kl; rewrite <- !sum_opp, <- sum_plus; apply sum_ext; intros i Hi.
  destruct (Hy i Hi) as [positive | <-]; [|ring].
  rewrite ln_div by (assumption || apply Hp, Hi); ring.
Qed.

(** Cross-entropy is strictly proper: no forecast q has a lower one than the honest forecast p, and only p itself
    has the same. *)
Theorem cross_entropy_is_proper n p q :
  distribution n p -> distribution n q ->
  (forall i, (i < n)%nat -> 0 < p i) -> (forall i, (i < n)%nat -> 0 < q i) ->
  cross_entropy n p p <= cross_entropy n p q
  /\ (cross_entropy n p p = cross_entropy n p q -> forall i, (i < n)%nat -> q i = p i).
Proof.
  intros Hp Hq positive_p positive_q.
  assert (unsigned : forall i, (i < n)%nat -> 0 <= p i) by apply Hp.
  rewrite !cross_entropy_is_entropy_plus_kl by assumption.
  destruct (gibbs_inequality n p p Hp Hp positive_p) as [_ [_ self]].
  destruct (gibbs_inequality n p q Hp Hq positive_q) as [nonneg [only _]].
  rewrite (self (fun _ _ => eq_refl)); split; [lra|].
  intros equal i Hi; symmetry; apply only; [lra | exact Hi].
Qed.

(** Entropy lies between 0 and ln n. *)
Theorem entropy_bounds n p :
  distribution n p -> 0 <= entropy n p <= ln (INR n).
Proof.
  intros Hp; pose proof Hp as [unsigned one]; unfold entropy; split.
  - rewrite <- sum_opp; apply sum_nonneg; intros i Hi.
    destruct (unsigned i Hi) as [positive | <-]; [|lra].
    assert (p i <= 1) by (rewrite <- one; apply (sum_ge_entry n p); assumption).
    assert (ln (p i) <= 0) by (rewrite <- ln_1; apply ln_le; assumption).
    nra.
  - assert (0 < n)%nat by (destruct n; [simpl in one; lra | lia]).
    assert (0 < INR n) as size by (apply lt_0_INR; assumption).
    assert (share : 0 < / INR n) by (apply Rinv_0_lt_compat, size).
    assert (distribution n (fun _ => / INR n)) as uniform.
    { split; [intros; lra | rewrite sum_const; field; lra]. }
    destruct (gibbs_inequality n p _ Hp uniform ltac:(intros; lra)) as [nonneg _].
    replace (kl n p (fun _ => / INR n)) with (\sum_(i < n) (p i * ln (p i)) + ln (INR n)) in nonneg; [lra|].
    change (sum n p = 1) in one.
    replace (ln (INR n)) with (\sum_(i < n) (p i * ln (INR n))) by (rewrite sum_scale_r, one; ring).
    unfold kl; rewrite <- sum_plus; apply sum_ext; intros i Hi.
    destruct (unsigned i Hi) as [positive | <-]; [|ring].
    rewrite ln_div, ln_Rinv by assumption; ring.
Qed.
