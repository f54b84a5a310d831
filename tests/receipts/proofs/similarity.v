(** Cosine, distance and search by inner product, for any number of dimensions and of stored vectors.

    Proved: the squared distance in terms of lengths and inner product; on vectors of length 1 it is 2 - 2 cos, so
    that distance, cosine and inner product order all candidates alike; an average of stored vectors is never a
    better match than the best of them; and the least weight of the best in a softmax with temperature.

    Assumed: entries are real; tau is above zero.

    Not said: anything of random vectors, of a trained model, or of floating-point numbers. *)

From Coq Require Import Reals Lra Lia Arith.
From Coquelicot Require Import Coquelicot.
From Proofs Require Import sums matrices softmax.
Open Scope R_scope.

(** The squared distance of two vectors of k entries. *)
Definition squared_distance (k : nat) (u v : nat -> R) : R := dot k (fun i => u i - v i) (fun i => u i - v i).

(** The cosine of two vectors of k entries. *)
Definition cosine (k : nat) (u v : nat -> R) : R := dot k u v / (norm k u * norm k v).

(** The squared distance is the sum of the squared lengths less twice the inner product. *)
Theorem squared_distance_expanded k u v :
  squared_distance k u v = norm k u ^ 2 + norm k v ^ 2 - 2 * dot k u v.
Proof.
  unfold norm; rewrite <- !Rsqr_pow2, !Rsqr_sqrt by apply dot_self_nonneg.
  unfold squared_distance, dot; rewrite <- sum_scale_l, <- sum_plus, <- sum_minus; apply sum_ext; intros; ring.
Qed.

(** The squared distance of two vectors of length 1 is 2 less twice their cosine. *)
Theorem squared_distance_of_unit_vectors k u v :
  norm k u = 1 -> norm k v = 1 -> squared_distance k u v = 2 - 2 * cosine k u v.
Proof. intros Hu Hv; rewrite squared_distance_expanded; unfold cosine; rewrite Hu, Hv; field. Qed.

(** Of two candidates of length 1, the nearer one to a query of length 1 has the larger cosine, and the reverse. *)
Theorem unit_vectors_are_ordered_alike k q u v :
  norm k q = 1 -> norm k u = 1 -> norm k v = 1 ->
  (squared_distance k q u < squared_distance k q v <-> cosine k q v < cosine k q u).
Proof. intros Hq Hu Hv; rewrite !squared_distance_of_unit_vectors by assumption; lra. Qed.

(** The inner product of q with a weighted sum of n vectors is the weighted sum of the inner products; if the weights
    are not negative and sum to 1, it is at most the largest of them. *)
Theorem average_never_wins k n q v w :
  (forall j, (j < n)%nat -> 0 <= w j) -> \sum_(j < n) w j = 1 ->
  dot k q (fun i => \sum_(j < n) (w j * v j i)) = \sum_(j < n) (w j * dot k q (v j))
  /\ forall most, (forall j, (j < n)%nat -> dot k q (v j) <= most) ->
     dot k q (fun i => \sum_(j < n) (w j * v j i)) <= most.
Proof.
  intros weights total.
  assert (linear : dot k q (fun i => \sum_(j < n) (w j * v j i)) = \sum_(j < n) (w j * dot k q (v j))).
  { unfold dot; transitivity (\sum_(i < k) (\sum_(j < n) (q i * (w j * v j i)))).
    - apply sum_ext; intros; symmetry; apply sum_scale_l.
    - rewrite sum_swap; apply sum_ext; intros; rewrite <- sum_scale_l; apply sum_ext; intros; ring. }
  split; [exact linear|]; intros most bound; rewrite linear.
  apply Rle_trans with (\sum_(j < n) (w j * most)).
  - apply sum_le; intros j Hj; apply Rmult_le_compat_l; auto.
  - rewrite sum_scale_r; replace (sum n w) with 1 by (symmetry; exact total); lra.
Qed.

(** If the score of b leads all others by at least g, its weight in the softmax of n scores over tau is at least
    1 / (1 + (n - 1) e^(-g / tau)). *)
Theorem weight_of_the_best n z b g tau :
  (b < n)%nat -> 0 < tau -> (forall j, (j < n)%nat -> j <> b -> z j <= z b - g) ->
  / (1 + (INR n - 1) * exp (- g / tau)) <= softmax n (fun j => z j / tau) b.
Proof.
  intros Hb Htau lead; unfold softmax.
  set (top := exp (z b / tau)); set (rest := exp (- g / tau)).
  assert (0 < top /\ 0 < rest) as [Htop Hrest] by (split; apply exp_pos).
  assert (upper : \sum_(j < n) exp (z j / tau) <= top * (1 + (INR n - 1) * rest)).
  { replace (top * (1 + (INR n - 1) * rest)) with (\sum_(j < n) (top * rest + delta j b * (top * (1 - rest)))).
    - apply sum_le; intros j Hj; destruct (Nat.eq_dec j b) as [-> | other].
      + rewrite delta_same; unfold top; lra.
      + rewrite delta_other by exact other; rewrite Rmult_0_l, Rplus_0_r; unfold top, rest; rewrite <- exp_plus.
        assert (z j / tau <= z b / tau + - g / tau) as order.
        { replace (z b / tau + - g / tau) with ((z b - g) * / tau) by (field; lra).
          apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat, Htau | auto]. }
        destruct order as [less | same]; [left; apply exp_increasing, less | right; rewrite same; reflexivity].
    - rewrite sum_plus, sum_const, (sum_delta n (fun _ => top * (1 - rest))) by exact Hb; ring. }
  assert (0 < \sum_(j < n) exp (z j / tau)) by (apply sum_positive; [lia | intros; apply exp_pos]).
  assert (0 < 1 + (INR n - 1) * rest).
  { apply (Rmult_lt_reg_l top); [exact Htop | rewrite Rmult_0_r; lra]. }
  apply (Rmult_le_reg_r (1 + (INR n - 1) * rest)); [assumption|].
  rewrite Rinv_l by lra.
  apply (Rmult_le_reg_r (\sum_(j < n) exp (z j / tau))); [assumption|].
  replace (top / (\sum_(j < n) exp (z j / tau)) * (1 + (INR n - 1) * rest) * \sum_(j < n) exp (z j / tau))
    with (top * (1 + (INR n - 1) * rest)) by (field; lra).
  lra.
Qed.
