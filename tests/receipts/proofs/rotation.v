(** Rotations of the plane, and what they make of rotary position embeddings (RoPE).

    Proved: rotations compose by adding their angles and keep lengths; R_m^T R_n = R_(n - m); and for
    a head of any even width, whose pair i turns by the position times the frequency omega i, turned
    vectors keep their length and the score of a turned query with a turned key depends on the offset
    of their positions only.

    Assumed: nothing of the frequencies, positions or vectors but that they are real; positions need
    not be whole numbers.

    Not said: that a model attends by distance, or works beyond the lengths it was trained on. Turned
    angles are rounded in a program, the more the larger the position; that is tested with numbers. *)

From Coq Require Import Reals Lra Lia.
From Proofs Require Import sums matrices.
Open Scope R_scope.

(** The matrix that turns the plane by an angle. *)
Definition turn (angle : R) (i j : nat) : R :=
  match i, j with
  | O, O => cos angle
  | O, _ => - sin angle
  | _, O => sin angle
  | _, _ => cos angle
  end.

(** The vector of the plane with a length and an angle. *)
Definition polar (length angle : R) (i : nat) : R :=
  match i with
  | O => length * cos angle
  | _ => length * sin angle
  end.

(** R_m, the matrix that turns a pair of frequency omega by its position m. *)
Definition rotation (omega m : R) : nat -> nat -> R := turn (m * omega).

(** A head's vector as pairs x i, turned by a position: pair i by its own frequency. *)
Definition rope (omega : nat -> R) (m : R) (x : nat -> nat -> R) (i : nat) : nat -> R :=
  apply_matrix 2 (rotation (omega i) m) (x i).

(** The inner product of two vectors that are made of pairs. *)
Definition score (pairs : nat) (q k : nat -> nat -> R) : R := \sum_(i < pairs) dot 2 (q i) (k i).

(** R_m gives a vector of any length r and angle phi the same length and the angle phi + m omega. *)
Theorem rotation_adds_the_angle omega m r phi i :
  (i < 2)%nat ->
  apply_matrix 2 (rotation omega m) (polar r phi) i = polar r (phi + m * omega) i.
Proof.
  intros Hi; unfold apply_matrix, rotation; simpl.
  destruct i as [|[|i]]; [| |lia]; simpl; rewrite ?cos_plus, ?sin_plus; ring.
Qed.

(** Turning by b and then by a is turning by a + b. *)
Theorem rotations_compose a b i j :
  (i < 2)%nat -> (j < 2)%nat -> matmul 2 (turn a) (turn b) i j = turn (a + b) i j.
Proof.
  intros Hi Hj; unfold matmul; simpl.
  destruct i as [|[|i]]; [| |lia]; destruct j as [|[|j]]; [| |lia | | |lia]; simpl;
    rewrite ?cos_plus, ?sin_plus; ring.
Qed.

(** Turning a vector of the plane keeps its length. *)
Theorem rotation_keeps_the_norm a x : norm 2 (apply_matrix 2 (turn a) x) = norm 2 x.
Proof.
  unfold norm, dot, apply_matrix; simpl; f_equal.
  transitivity ((Rsqr (sin a) + Rsqr (cos a)) * (x 0%nat * x 0%nat + x 1%nat * x 1%nat)).
  - unfold Rsqr; ring.
  - rewrite sin2_cos2; ring.
Qed.

(** R_m transposed times R_n is R_(n - m): two turns leave the difference of the positions. *)
Theorem rotations_leave_the_difference omega m n i j :
  (i < 2)%nat -> (j < 2)%nat ->
  matmul 2 (transpose (rotation omega m)) (rotation omega n) i j = rotation omega (n - m) i j.
Proof.
  intros Hi Hj; unfold matmul, transpose, rotation; rewrite Rmult_minus_distr_r; simpl.
  destruct i as [|[|i]]; [| |lia]; destruct j as [|[|j]]; [| |lia | | |lia]; simpl;
    rewrite ?cos_minus, ?sin_minus; ring.
Qed.

(** The score of a query turned by m and a key turned by n is that of the query and the key turned by n - m. *)
Theorem rope_score_is_of_the_offset pairs omega m n q k :
  score pairs (rope omega m q) (rope omega n k) = score pairs q (rope omega (n - m) k).
Proof.
  apply sum_ext; intros i _.
  unfold dot, rope, apply_matrix, rotation; rewrite Rmult_minus_distr_r; simpl.
  rewrite cos_minus, sin_minus; ring.
Qed.

(** Moving the query and the key by the same s changes no score. *)
Theorem rope_score_is_shift_invariant pairs omega m n s q k :
  score pairs (rope omega (m + s) q) (rope omega (n + s) k) = score pairs (rope omega m q) (rope omega n k).
Proof. rewrite !rope_score_is_of_the_offset; f_equal; f_equal; ring. Qed.

(** A head's vector keeps its length when its pairs are turned. *)
Theorem rope_keeps_the_norm pairs omega m x :
  sqrt (score pairs (rope omega m x) (rope omega m x)) = sqrt (score pairs x x).
Proof.
  rewrite rope_score_is_of_the_offset; f_equal; apply sum_ext; intros i _.
  unfold dot, rope, apply_matrix, rotation; simpl.
  replace (m - m) with 0 by ring; rewrite Rmult_0_l, cos_0, sin_0; ring.
Qed.

(** If n values are turned by their positions s, weighed by any alpha, and the output is turned back by m, what
    remains are values turned by their offsets s - m. *)
Theorem turned_values_turned_back omega m n s alpha v i c :
  (c < 2)%nat ->
  apply_matrix 2 (transpose (rotation (omega i) m)) (fun a => \sum_(j < n) (alpha j * rope omega (s j) (v j) i a)) c
  = \sum_(j < n) (alpha j * rope omega (s j - m) (v j) i c).
Proof.
  intros Hc; unfold rope, apply_matrix, transpose, rotation; simpl.
  rewrite Rplus_0_l, <- !sum_scale_l, <- sum_plus; apply sum_ext; intros j _.
  rewrite Rmult_minus_distr_r.
  destruct c as [|[|c]]; [| |lia]; simpl; rewrite cos_minus, sin_minus; ring.
Qed.
