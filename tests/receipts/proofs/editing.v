(** The edit of rank one: W + u^T (v - h W) / (h . u), for a matrix with any number of rows and columns.

    Proved: the row h is answered by v, whatever u is, if it is not at a right angle to h; every other row moves in
    the direction of v - h W, by the share (g . u) / (h . u); a row at a right angle to u does not move; and with
    u = h no other matrix that answers h by v is nearer to W, column by column and so as a whole.

    Assumed: entries are real.

    Not said: that an answer of a trained model is such a row, or that the change is wanted elsewhere. *)

From Coq Require Import Reals Lra Lia.
From Proofs Require Import sums matrices.
Open Scope R_scope.

(** The answer to the row h of k entries, in column j. *)
Definition answer (k : nat) (h : nat -> R) (W : nat -> nat -> R) (j : nat) : R := \sum_(l < k) (h l * W l j).

(** The edited matrix. *)
Definition edited (k : nat) (W : nat -> nat -> R) (h u v : nat -> R) (l j : nat) : R :=
  W l j + u l * (v j - answer k h W j) / dot k h u.

(** The answer to any row g moves by the share (g . u) / (h . u) of v - h W. *)
Theorem edit_moves_by_shares k W h u v g j :
  answer k g (edited k W h u v) j - answer k g W j = dot k g u / dot k h u * (v j - answer k h W j).
Proof.
  transitivity (\sum_(l < k) (g l * (edited k W h u v l j - W l j))).
  - unfold answer; rewrite <- sum_minus; apply sum_ext; intros; ring.
  - set (d := v j - answer k h W j); set (c := dot k h u).
    transitivity (\sum_(l < k) (d / c * (g l * u l))).
    + apply sum_ext; intros; unfold edited; fold d; fold c; unfold Rdiv; ring.
    + rewrite sum_scale_l; unfold dot, Rdiv; ring.
Qed.

(** The row h is answered by v, for every u that is not at a right angle to h. *)
Theorem edit_hits_its_target k W h u v j : dot k h u <> 0 -> answer k h (edited k W h u v) j = v j.
Proof.
  intros apart; assert (moved := edit_moves_by_shares k W h u v h j).
  replace (dot k h u / dot k h u) with 1 in moved by (field; exact apart); lra.
Qed.

(** A row at a right angle to u keeps its answer. *)
Theorem edit_spares_right_angles k W h u v g j :
  dot k g u = 0 -> answer k g (edited k W h u v) j = answer k g W j.
Proof.
  intros right_angle; assert (moved := edit_moves_by_shares k W h u v g j).
  rewrite right_angle in moved; unfold Rdiv in moved; rewrite !Rmult_0_l in moved; lra.
Qed.

(** With u = h the change is the smallest: in each column, any matrix that answers h by v is at least as far from W. *)
Theorem edit_is_the_smallest k W W' h v j :
  0 < dot k h h -> answer k h W' j = v j ->
  \sum_(l < k) ((edited k W h h v l j - W l j) ^ 2) <= \sum_(l < k) ((W' l j - W l j) ^ 2).
Proof.
  intros positive hits.
  set (d := v j - answer k h W j); set (c := dot k h h) in *; set (x := fun l => W' l j - W l j).
  assert (inner : dot k h x = d).
  { unfold d; rewrite <- hits; unfold answer, dot, x; rewrite <- sum_minus; apply sum_ext; intros; ring. }
  assert (left : \sum_(l < k) ((edited k W h h v l j - W l j) ^ 2) = d ^ 2 / c).
  { transitivity (\sum_(l < k) (d ^ 2 / c ^ 2 * (h l * h l))).
    - apply sum_ext; intros; unfold edited; fold d; fold c; field; lra.
    - rewrite sum_scale_l; change (sum k (fun l => h l * h l)) with c; field; lra. }
  assert (right : \sum_(l < k) ((W' l j - W l j) ^ 2) = dot k x x).
  { unfold dot, x; apply sum_ext; intros; ring. }
  rewrite left, right.
  assert (away : 0 <= \sum_(l < k) ((x l - d / c * h l) ^ 2)) by (apply sum_nonneg; intros; apply pow2_ge_0).
  assert (expanded : \sum_(l < k) ((x l - d / c * h l) ^ 2) = dot k x x - 2 * (d / c) * dot k h x + (d / c) ^ 2 * c).
  { transitivity (\sum_(l < k) (x l * x l + -2 * (d / c) * (h l * x l) + (d / c) ^ 2 * (h l * h l))).
    - apply sum_ext; intros; ring.
    - rewrite !sum_plus, !sum_scale_l; change (sum k (fun l => h l * h l)) with c; unfold dot; ring. }
  rewrite expanded, inner in away.
  replace (dot k x x - 2 * (d / c) * d + (d / c) ^ 2 * c) with (dot k x x - d ^ 2 / c) in away by (field; lra).
  lra.
Qed.
