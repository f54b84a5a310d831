(** Linear attention: the order of the products does not matter.

    Proved: (phi(Q) phi(K)^T) V = phi(Q) (phi(K)^T V) for matrices of any size and any feature map phi,
    and the same with each row divided by its normaliser.

    Assumed: entries are real. The causal form is the case n = t: the sums run over the first t keys.

    Not said: that phi(q) phi(k)^T is near the exponential of a score, that a model with it learns as well as
    with softmax, or that the second order is faster; that depends on the sizes. A program rounds differently
    in the two orders. *)

From Coq Require Import Reals Lra Lia.
From Proofs Require Import sums matrices.
Open Scope R_scope.

(** A feature map applied to each row of a matrix. *)
Definition features (phi : (nat -> R) -> nat -> R) (A : nat -> nat -> R) (i : nat) : nat -> R :=
  phi (A i).

(** For n keys and r features, the n by n weights need not be made:
    (phi(Q) phi(K)^T) V = phi(Q) (phi(K)^T V). *)
Theorem linear_attention_reassociates n r phi Q K V i c :
  matmul n (matmul r (features phi Q) (transpose (features phi K))) V i c
  = matmul r (features phi Q) (matmul n (transpose (features phi K)) V) i c.
Proof. apply matmul_associative. Qed.

(** With the normaliser: the average of n values weighed by phi(q) . phi(k) is
    phi(q) (sum of phi(k) v) over phi(q) . (sum of phi(k)). *)
Theorem normalised_linear_attention_reassociates n r phi Q K V i c :
  let weight j := dot r (features phi Q i) (features phi K j) in
  (\sum_(j < n) (weight j * V j c)) / (\sum_(j < n) weight j)
  = matmul r (features phi Q) (matmul n (transpose (features phi K)) V) i c
    / dot r (features phi Q i) (fun a => \sum_(j < n) features phi K j a).
Proof.
  intros weight; f_equal.
  - exact (linear_attention_reassociates n r phi Q K V i c).
  - unfold weight, dot; rewrite sum_swap.
    apply sum_ext; intros a _; apply sum_scale_l.
Qed.
