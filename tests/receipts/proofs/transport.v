(** Layers as averages: products of row-stochastic matrices, what they shrink, and the symbol of a kernel.

    A row-stochastic matrix has n rows of n weights that are not negative and sum to one, as attention
    with its weights given has. The theorems are about the weights alone: about a layer's output
    projection, its feed-forward network and its residual path they say nothing. *)

From Coq Require Import Reals Lra Lia.
From Coquelicot Require Import Coquelicot.
From Proofs Require Import sums matrices.
Open Scope R_scope.

(** Rows of n weights, none negative, that sum to one. *)
Definition stochastic (n : nat) (P : nat -> nat -> R) : Prop :=
  forall i, (i < n)%nat -> (forall j, (j < n)%nat -> 0 <= P i j) /\ \sum_(j < n) P i j = 1.

(** A query sees no key after it. *)
Definition causal (n : nat) (P : nat -> nat -> R) : Prop :=
  forall i j, (i < n)%nat -> (j < n)%nat -> (i < j)%nat -> P i j = 0.

(** The mean of f (n numbers) under the weights p. *)
Definition average (n : nat) (p f : nat -> R) : R := \sum_(j < n) (p j * f j).

(** The variance of f under the weights p. *)
Definition variance (n : nat) (p f : nat -> R) : R := \sum_(j < n) (p j * (f j - average n p f) ^ 2).

(** Two layers in sequence are a layer: the product of row-stochastic matrices is row-stochastic. *)
Theorem product_is_stochastic n P Q : stochastic n P -> stochastic n Q -> stochastic n (matmul n P Q).
Proof.
  intros HP HQ i Hi; destruct (HP i Hi) as [positive total]; split.
  - intros j Hj; apply sum_nonneg; intros l Hl.
    apply Rmult_le_pos; [apply positive, Hl | apply (HQ l Hl), Hj].
  - unfold matmul; rewrite sum_swap, <- total; apply sum_ext; intros l Hl.
    destruct (HQ l Hl) as [_ one]; change (sum n (Q l) = 1) in one.
    rewrite (sum_scale_l n (P i l) (Q l)), one; ring.
Qed.

(** The product of causal matrices is causal. *)
Theorem product_is_causal n P Q : causal n P -> causal n Q -> causal n (matmul n P Q).
Proof.
  intros HP HQ i j Hi Hj before; apply sum_zero; intros l Hl.
  destruct (Nat.lt_ge_cases i l) as [far|near].
  - rewrite (HP i l Hi Hl far); ring.
  - rewrite (HQ l j Hl Hj) by lia; ring.
Qed.

(** An average lies between bounds of what it averages. *)
Theorem average_stays_between n P f low high i :
  stochastic n P -> (forall j, (j < n)%nat -> low <= f j <= high) -> (i < n)%nat ->
  low <= average n (P i) f <= high.
Proof.
  intros HP within Hi; destruct (HP i Hi) as [positive total]; unfold average; split.
  - rewrite <- (Rmult_1_r low), <- total, <- sum_scale_l; apply sum_le; intros j Hj.
    rewrite Rmult_comm; apply Rmult_le_compat_l; [apply positive, Hj | apply within, Hj].
  - rewrite <- (Rmult_1_r high), <- total, <- sum_scale_l; apply sum_le; intros j Hj.
    rewrite (Rmult_comm high); apply Rmult_le_compat_l; [apply positive, Hj | apply within, Hj].
Qed.

Lemma abs_of_sum n f : Rabs (sum n f) <= \sum_(j < n) Rabs (f j).
Proof.
  induction n as [|n IH]; [simpl; rewrite Rabs_R0; lra|].
  simpl; eapply Rle_trans; [apply Rabs_triang|]; lra.
Qed.

(** If no two rows differ by more than 2 c in the L1 distance, a layer shrinks the difference of any
    two of its numbers to at most c times the difference of the bounds (Dobrushin's coefficient). *)
Theorem layer_shrinks_differences n P f low high c i j :
  stochastic n P -> (forall l, (l < n)%nat -> low <= f l <= high) ->
  (forall a b, (a < n)%nat -> (b < n)%nat -> \sum_(l < n) Rabs (P a l - P b l) <= 2 * c) ->
  (i < n)%nat -> (j < n)%nat ->
  Rabs (average n (P i) f - average n (P j) f) <= c * (high - low).
Proof.
  intros HP within near Hi Hj.
  destruct (HP i Hi) as [_ one_i]; destruct (HP j Hj) as [_ one_j].
  set (middle := (low + high) / 2).
  replace (average n (P i) f - average n (P j) f) with (\sum_(l < n) ((P i l - P j l) * (f l - middle))).
  2: {
    unfold average; rewrite <- sum_minus.
    replace (\sum_(l < n) (P i l * f l - P j l * f l))
      with (\sum_(l < n) (P i l * f l - P j l * f l) - middle * (\sum_(l < n) P i l - \sum_(l < n) P j l))
      by (rewrite one_i, one_j; ring).
    rewrite <- sum_minus, <- sum_scale_l, <- sum_minus; apply sum_ext; intros; ring. }
  eapply Rle_trans; [apply abs_of_sum|].
  apply Rle_trans with (\sum_(l < n) (Rabs (P i l - P j l) * ((high - low) / 2))).
  - apply sum_le; intros l Hl; rewrite Rabs_mult; apply Rmult_le_compat_l; [apply Rabs_pos|].
    apply Rabs_le; unfold middle; destruct (within l Hl); lra.
  - rewrite sum_scale_r.
    assert (0 <= high - low) by (destruct (within i Hi); lra).
    specialize (near i j Hi Hj).
    replace (c * (high - low)) with (2 * c * ((high - low) / 2)) by field.
    apply Rmult_le_compat_r; [lra | exact near].
Qed.

(** The real and the imaginary part of the symbol of a kernel p at the distances x. *)
Definition symbol_re (n : nat) (p x : nat -> R) (k : R) : R := average n p (fun j => cos (k * x j)).
Definition symbol_im (n : nat) (p x : nat -> R) (k : R) : R := average n p (fun j => sin (k * x j)).

Lemma square_of_an_average n p f :
  (forall j, (j < n)%nat -> 0 <= p j) -> \sum_(j < n) p j = 1 ->
  average n p f ^ 2 <= average n p (fun j => f j ^ 2).
Proof.
  intros positive total.
  assert (rest : average n p (fun j => f j ^ 2) - average n p f ^ 2 = variance n p f).
  { set (m := average n p f); unfold variance; fold m.
    rewrite (sum_ext n _ (fun j => p j * f j ^ 2 - (2 * m * (p j * f j) - m ^ 2 * p j))) by (intros; ring).
    rewrite sum_minus, sum_minus, !sum_scale_l; change (sum n p = 1) in total; rewrite total.
    change (\sum_(j < n) (p j * f j)) with m; unfold average; ring. }
  assert (0 <= variance n p f); [|lra].
  apply sum_nonneg; intros j Hj; apply Rmult_le_pos; [apply positive, Hj|apply pow2_ge_0].
Qed.

(** The symbol of a kernel of non-negative weights that sum to one is nowhere longer than 1, whatever
    the distances: no wave is amplified. *)
Theorem symbol_is_at_most_one n p x k :
  (forall j, (j < n)%nat -> 0 <= p j) -> \sum_(j < n) p j = 1 ->
  symbol_re n p x k ^ 2 + symbol_im n p x k ^ 2 <= 1.
Proof.
  intros positive total; unfold symbol_re, symbol_im.
  pose proof (square_of_an_average n p (fun j => cos (k * x j)) positive total).
  pose proof (square_of_an_average n p (fun j => sin (k * x j)) positive total).
  apply Rle_trans with (average n p (fun j => cos (k * x j) ^ 2) + average n p (fun j => sin (k * x j) ^ 2)); [lra|].
  right; unfold average; rewrite <- sum_plus, <- total; apply sum_ext; intros j Hj.
  pose proof (sin2_cos2 (k * x j)) as one; unfold Rsqr in one.
  transitivity (p j * (sin (k * x j) * sin (k * x j) + cos (k * x j) * cos (k * x j))); [ring | rewrite one; ring].
Qed.

(** Of two independent jumps, one by x with weights p and one by y with weights q, the variance of the
    sum is the sum of the variances. *)
Theorem variance_of_independent_jumps m n p q x y :
  \sum_(i < m) p i = 1 -> \sum_(j < n) q j = 1 ->
  \sum_(i < m) (\sum_(j < n) (p i * q j * (x i + y j - (average m p x + average n q y)) ^ 2))
    = variance m p x + variance n q y.
Proof.
  intros one_p one_q; change (sum m p = 1) in one_p; change (sum n q = 1) in one_q.
  set (a := average m p x); set (b := average n q y).
  assert (zero : \sum_(j < n) (q j * (y j - b)) = 0).
  { rewrite (sum_ext n _ (fun j => q j * y j - b * q j)) by (intros; ring).
    rewrite sum_minus, sum_scale_l, one_q; unfold b, average; ring. }
  rewrite (sum_ext m _ (fun i => p i * (x i - a) ^ 2 + p i * variance n q y)).
  - rewrite sum_plus, sum_scale_r, one_p; unfold variance; fold a; ring.
  - intros i _; unfold variance; fold b.
    rewrite (sum_ext n _ (fun j => p i * (x i - a) ^ 2 * q j + (2 * p i * (x i - a) * (q j * (y j - b)) + p i * (q j * (y j - b) ^ 2)))) by (intros; ring).
    rewrite sum_plus, sum_plus, !sum_scale_l, one_q, zero; ring.
Qed.
