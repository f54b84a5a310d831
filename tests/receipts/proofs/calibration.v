(** The calibration error of binned forecasts, the two parts of a squared error, the two parts of a smoothed loss.

    Proved: bins that lie inside other bins never give a smaller calibration error; a squared error is calibration
    plus refinement; the cross-entropy of a smoothed target is a mixture of two.

    Assumed: finitely many forecasts; in each theorem what stands before its arrows.

    Not said: how large a calibration error is for a model that is calibrated, or that smoothing helps a model. *)

From Coq Require Import Reals Lra Lia.
From Proofs Require Import sums gibbs.
Open Scope R_scope.

(** How far what came true is ahead of what was said, summed over the forecasts in bin m. *)
Definition gap (N : nat) (right said : nat -> R) (bin : nat -> nat) (m : nat) : R :=
  \sum_(n < N) (delta (bin n) m * (right n - said n)).

(** The expected calibration error with M bins: the share of a bin times its gap of means is its summed gap over N. *)
Definition ece (N M : nat) (right said : nat -> R) (bin : nat -> nat) : R :=
  (\sum_(m < M) Rabs (gap N right said bin m)) / INR N.

(** The number of forecasts in group k, and the share of them that came true. *)
Definition count (N : nat) (group : nat -> nat) (k : nat) : R := \sum_(n < N) delta (group n) k.
Definition share (N : nat) (right : nat -> R) (group : nat -> nat) (k : nat) : R :=
  (\sum_(n < N) (delta (group n) k * right n)) / count N group k.

Lemma delta_range i j : 0 <= delta i j.
Proof. unfold delta; destruct (Nat.eqb i j); lra. Qed.

Lemma abs_sum n f : Rabs (sum n f) <= \sum_(i < n) Rabs (f i).
Proof.
  induction n as [|n IH]; simpl; [rewrite Rabs_R0; lra|].
  eapply Rle_trans; [apply Rabs_triang | lra].
Qed.

Lemma sum_of_delta n j : (j < n)%nat -> \sum_(i < n) delta j i = 1.
Proof.
  intros Hj; rewrite <- (sum_delta n (fun _ => 1) j Hj); apply sum_ext; intros i _; rewrite delta_sym; ring.
Qed.

Lemma coarse_gap N F right said coarse fine join m :
  (forall n, (n < N)%nat -> (fine n < F)%nat) -> (forall n, (n < N)%nat -> coarse n = join (fine n)) ->
  gap N right said coarse m = \sum_(j < F) (delta (join j) m * gap N right said fine j).
Proof.
  intros Hfine Hjoin; unfold gap.
  rewrite (sum_ext F _ (fun j => \sum_(n < N) (delta (join j) m * (delta (fine n) j * (right n - said n)))))
    by (intros; rewrite sum_scale_l; reflexivity).
  rewrite sum_swap; apply sum_ext; intros n Hn; rewrite (Hjoin n Hn).
  rewrite <- (sum_delta F (fun j => delta (join j) m * (right n - said n)) (fine n) (Hfine n Hn)).
  apply sum_ext; intros j _; rewrite (delta_sym j); ring.
Qed.

(** If every fine bin lies inside one coarse bin, the finer bins give no smaller calibration error. *)
Theorem finer_bins_never_lower_the_ece N M F right said coarse fine join :
  (0 < N)%nat -> (forall n, (n < N)%nat -> (fine n < F)%nat) -> (forall j, (j < F)%nat -> (join j < M)%nat) ->
  (forall n, (n < N)%nat -> coarse n = join (fine n)) ->
  ece N M right said coarse <= ece N F right said fine.
Proof.
  intros HN Hfine Hrange Hjoin; unfold ece, Rdiv; apply Rmult_le_compat_r.
  { apply Rlt_le, Rinv_0_lt_compat, lt_0_INR, HN. }
  apply Rle_trans with (\sum_(m < M) (\sum_(j < F) (delta (join j) m * Rabs (gap N right said fine j)))).
  - apply sum_le; intros m _; rewrite (coarse_gap N F right said coarse fine join m Hfine Hjoin).
    eapply Rle_trans; [apply abs_sum | apply sum_le; intros j _].
    rewrite Rabs_mult, (Rabs_right (delta _ _)) by apply Rle_ge, delta_range; lra.
  - rewrite sum_swap; apply sum_le; intros j Hj.
    rewrite sum_scale_r, sum_of_delta by (apply Hrange, Hj); lra.
Qed.

Lemma squared_error_of_a_group N c right group k :
  (forall n, (n < N)%nat -> right n * right n = right n) -> 0 < count N group k ->
  \sum_(n < N) (delta (group n) k * (c - right n) ^ 2)
  = count N group k * (c - share N right group k) ^ 2
    + count N group k * (share N right group k * (1 - share N right group k)).
Proof.
  intros Hright Hcount.
  rewrite (sum_ext N _ (fun n => delta (group n) k * c ^ 2 + delta (group n) k * right n * (1 - 2 * c))).
  2: { intros n Hn; replace ((c - right n) ^ 2) with (c ^ 2 - 2 * c * right n + right n * right n) by ring.
       rewrite (Hright n Hn); ring. }
  rewrite sum_plus, !sum_scale_r; unfold share, count in *; field; lra.
Qed.

(** Forecasts that take the values c_k: their squared error is calibration plus refinement, where what came true is 1 or 0. *)
Theorem squared_error_is_calibration_plus_refinement N K c right group :
  (forall n, (n < N)%nat -> (group n < K)%nat) -> (forall n, (n < N)%nat -> right n = 0 \/ right n = 1) ->
  (forall k, (k < K)%nat -> 0 < count N group k) ->
  (\sum_(n < N) ((c (group n) - right n) ^ 2)) / INR N
  = \sum_(k < K) (count N group k / INR N * (c k - share N right group k) ^ 2)
    + \sum_(k < K) (count N group k / INR N * (share N right group k * (1 - share N right group k))).
Proof.
  intros Hgroup Hright Hcount.
  rewrite (sum_ext N _ (fun n => \sum_(k < K) (delta (group n) k * (c k - right n) ^ 2))).
  2: { intros n Hn; rewrite <- (sum_delta K (fun k => (c k - right n) ^ 2) (group n) (Hgroup n Hn)).
       apply sum_ext; intros k _; rewrite (delta_sym k); reflexivity. }
  rewrite sum_swap, <- sum_divide, <- sum_plus; apply sum_ext; intros k Hk.
  rewrite (squared_error_of_a_group N (c k) right group k); [unfold Rdiv; ring | | apply Hcount, Hk].
  intros n Hn; destruct (Hright n Hn) as [-> | ->]; ring.
Qed.

(** The cross-entropy of a target that is mixed with the uniform one is the same mixture of two cross-entropies. *)
Theorem smoothed_loss_is_a_mixture V eps y p :
  cross_entropy V (fun i => (1 - eps) * y i + eps / INR V) p
  = (1 - eps) * cross_entropy V y p + eps * cross_entropy V (fun _ => 1 / INR V) p.
Proof.
  unfold cross_entropy.
  rewrite (sum_ext V _ (fun i => (1 - eps) * (y i * ln (p i)) + eps * (1 / INR V * ln (p i)))).
  - rewrite sum_plus, !sum_scale_l; ring.
  - intros i _; unfold Rdiv; ring.
Qed.
