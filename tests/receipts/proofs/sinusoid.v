(** Sinusoidal position encoding: at the position pos, pair i is (sin(omega_i pos), cos(omega_i pos)).

    Proved: moving on by k turns each pair by a matrix that does not depend on the position; and the inner
    product of the encodings of two positions is the sum of cos(omega_i k), so it depends on their
    distance k only.

    Assumed: frequencies and positions are real.

    Not said: that a model uses this, or that it works beyond the lengths it was trained on. *)

From Coq Require Import Reals Lra Lia.
From Proofs Require Import sums matrices.
Open Scope R_scope.

(** The encoding of a position: pair i holds a sine and a cosine. *)
Definition encoding (omega : nat -> R) (pos : R) (i : nat) (c : nat) : R :=
  match c with
  | O => sin (omega i * pos)
  | _ => cos (omega i * pos)
  end.

(** The matrix that moves a pair of frequency w on by k. *)
Definition move (w k : R) (a b : nat) : R :=
  match a, b with
  | O, O => cos (w * k)
  | O, _ => sin (w * k)
  | _, O => - sin (w * k)
  | _, _ => cos (w * k)
  end.

(** An offset of the encoding is a linear map of it: PE(pos + k) = M_k PE(pos), with M_k free of pos. *)
Theorem offset_is_a_linear_map omega pos k i c :
  (c < 2)%nat -> encoding omega (pos + k) i c = apply_matrix 2 (move (omega i) k) (encoding omega pos i) c.
Proof.
  intros Hc; unfold apply_matrix; simpl.
  destruct c as [|[|c]]; [| |lia]; simpl; rewrite Rmult_plus_distr_l, ?sin_plus, ?cos_plus; ring.
Qed.

(** The inner product of the encodings of pos and pos + k is the sum of cos(omega_i k) over the pairs. *)
Theorem product_of_two_encodings pairs omega pos k :
  \sum_(i < pairs) dot 2 (encoding omega pos i) (encoding omega (pos + k) i)
  = \sum_(i < pairs) cos (omega i * k).
Proof.
  apply sum_ext; intros i _; unfold dot; simpl.
  replace (omega i * k) with (omega i * (pos + k) - omega i * pos) by ring.
  rewrite cos_minus; ring.
Qed.
