(** Clipping a gradient by its global norm: g becomes min(1, c / |g|) g.

    Proved, for a gradient with any number of entries: the result's norm is at most c, and exactly c if the
    gradient was longer; its direction is unchanged; inside the ball of radius c nothing changes.

    Assumed: entries are real and c is positive. For g = 0 the quotient c / 0 is Rocq's, a
    number that the product with 0 makes harmless; a program must guard it, and PyTorch divides by |g| + 1e-6
    instead, so its result is a little shorter than c.

    Not said: that clipping helps training, or which c is good. *)

From Coq Require Import Reals Lra Lia.
From Proofs Require Import sums matrices.
Open Scope R_scope.

(** The clipped gradient of n entries. *)
Definition clip (n : nat) (c : R) (g : nat -> R) (i : nat) : R := Rmin 1 (c / norm n g) * g i.

Lemma norm_scale n s g : 0 <= s -> norm n (fun i => s * g i) = s * norm n g.
Proof.
  intros Hs; unfold norm.
  replace (dot n (fun i => s * g i) (fun i => s * g i)) with (Rsqr s * dot n g g).
  - rewrite sqrt_mult by (apply Rle_0_sqr || apply dot_self_nonneg).
    rewrite sqrt_Rsqr by exact Hs; reflexivity.
  - unfold dot; rewrite <- sum_scale_l; apply sum_ext; intros; unfold Rsqr; ring.
Qed.

Lemma norm_zero n g : norm n g = 0 -> forall i, (i < n)%nat -> g i = 0.
Proof.
  intros zero i Hi; apply sqrt_eq_0 in zero; [|apply dot_self_nonneg].
  apply Rsqr_0_uniq, (sum_nonneg_zero n (fun j => g j * g j)); [|exact zero | exact Hi].
  intros; apply Rle_0_sqr.
Qed.

(** A gradient of norm at most c is not changed. *)
Theorem clipping_keeps_the_ball n c g i :
  0 < c -> norm n g <= c -> (i < n)%nat -> clip n c g i = g i.
Proof.
  intros Hc inside Hi; unfold clip.
  destruct (Req_dec (norm n g) 0) as [zero | nonzero].
  - rewrite (norm_zero n g zero i Hi); ring.
  - assert (0 < norm n g) by (pose proof (sqrt_pos (dot n g g)); unfold norm in *; lra).
    rewrite Rmin_left; [ring|].
    apply (Rmult_le_reg_r (norm n g)); [assumption|].
    unfold Rdiv; rewrite Rmult_assoc, Rinv_l; lra.
Qed.

(** A gradient of norm above c gets the norm c. *)
Theorem clipping_shortens_to_c n c g : 0 < c -> c < norm n g -> norm n (clip n c g) = c.
Proof.
  intros Hc longer; unfold clip.
  assert (small : 0 <= c / norm n g <= 1).
  { split; [apply Rlt_le, Rdiv_lt_0_compat; lra|].
    apply (Rmult_le_reg_r (norm n g)); [lra|].
    unfold Rdiv; rewrite Rmult_assoc, Rinv_l; lra. }
  rewrite Rmin_right by lra.
  rewrite norm_scale by lra; field; lra.
Qed.

(** The clipped gradient's norm is at most c. *)
Theorem clipping_bounds_the_norm n c g : 0 < c -> norm n (clip n c g) <= c.
Proof.
  intros Hc; destruct (Rle_lt_dec (norm n g) c) as [inside | longer].
  - replace (norm n (clip n c g)) with (norm n g); [exact inside|].
    unfold norm, dot; f_equal; apply sum_ext; intros i Hi.
    rewrite clipping_keeps_the_ball by assumption; reflexivity.
  - rewrite clipping_shortens_to_c by assumption; lra.
Qed.

(** The direction is unchanged: the clipped gradient is the gradient times one number between 0 and 1, above 0. *)
Theorem clipping_keeps_the_direction n c g :
  0 < c -> exists s, 0 < s <= 1 /\ forall i, (i < n)%nat -> clip n c g i = s * g i.
Proof.
  intros Hc; destruct (Rle_lt_dec (norm n g) c) as [inside | longer].
  - exists 1; split; [lra|]; intros i Hi.
    rewrite clipping_keeps_the_ball by assumption; ring.
  - exists (Rmin 1 (c / norm n g)); split; [|reflexivity].
    split; [|apply Rmin_l].
    apply Rmin_glb_lt; [lra | apply Rdiv_lt_0_compat; lra].
Qed.

(** Clipping is exactly this: the norm is at most c, the direction is unchanged, and inside the ball nothing changes. *)
Theorem clipping n c g :
  0 < c ->
  norm n (clip n c g) <= c
  /\ (exists s, 0 < s <= 1 /\ forall i, (i < n)%nat -> clip n c g i = s * g i)
  /\ (norm n g <= c -> forall i, (i < n)%nat -> clip n c g i = g i).
Proof.
  intros Hc; repeat split.
  - apply clipping_bounds_the_norm, Hc.
  - apply clipping_keeps_the_direction, Hc.
  - intros; apply clipping_keeps_the_ball; assumption.
Qed.
