(** Attention from blocks, a state space as a matrix, and what the delta rule writes.

    Proved: two blocks of keys, each with a shift of its own, give attention over all of them; a recurrence whose state is
    multiplied by a number of each token is one product of a matrix with the values, for any numbers and any width; after a
    step of the delta rule a key of length 1 answers with the old answer and the new value in the shares 1 - beta and beta,
    and a key at a right angle answers as before.

    Assumed: entries are real.

    Not said: how a program rounds, in either order; that a model learns keys of length 1 or at right angles; that
    one form is faster than another. *)

From Coq Require Import Reals Lra Lia.
From Coquelicot Require Import Coquelicot.
From Proofs Require Import sums matrices.
Open Scope R_scope.

(** What a block of n keys is reduced to: the sum of the exponentials of its scores less a shift c, and the sum of its
    values with these as weights. *)
Definition block_total (n : nat) (s : nat -> R) (c : R) : R := \sum_(j < n) exp (s j - c).
Definition block_mixed (n : nat) (s v : nat -> R) (c : R) : R := \sum_(j < n) (exp (s j - c) * v j).

Lemma block_total_shift n s c : block_total n s c = exp (- c) * \sum_(j < n) exp (s j).
Proof.
  unfold block_total; rewrite <- sum_scale_l; apply sum_ext; intros j _.
  unfold Rminus; rewrite exp_plus; ring.
Qed.

Lemma block_mixed_shift n s v c : block_mixed n s v c = exp (- c) * \sum_(j < n) (exp (s j) * v j).
Proof.
  unfold block_mixed; rewrite <- sum_scale_l; apply sum_ext; intros j _.
  unfold Rminus; rewrite exp_plus; ring.
Qed.

Lemma sum_exp_positive n s : (0 < n)%nat -> 0 < \sum_(j < n) exp (s j).
Proof. intros some; apply sum_positive; [exact some | intros; apply exp_pos]. Qed.

(** Two blocks with shifts of their own, brought to one shift c and added, give the average of all values weighed by the
    exponentials of their scores, whatever the three shifts are. *)
Theorem two_blocks_make_the_whole n1 n2 s1 v1 s2 v2 c1 c2 c : (0 < n1)%nat ->
  (exp (c1 - c) * block_mixed n1 s1 v1 c1 + exp (c2 - c) * block_mixed n2 s2 v2 c2)
  / (exp (c1 - c) * block_total n1 s1 c1 + exp (c2 - c) * block_total n2 s2 c2)
  = (\sum_(j < n1) (exp (s1 j) * v1 j) + \sum_(j < n2) (exp (s2 j) * v2 j))
    / (\sum_(j < n1) exp (s1 j) + \sum_(j < n2) exp (s2 j)).
Proof.
  intros some; rewrite !block_total_shift, !block_mixed_shift.
  assert (one : forall x y, exp (x - c) * (exp (- x) * y) = exp (- c) * y).
  { intros x y; rewrite <- Rmult_assoc, <- exp_plus; f_equal; f_equal; ring. }
  rewrite !one, <- !Rmult_plus_distr_l.
  assert (first : 0 < \sum_(j < n1) exp (s1 j)) by (apply sum_exp_positive; exact some).
  assert (second : 0 <= \sum_(j < n2) exp (s2 j)).
  { apply sum_nonneg; intros; apply Rlt_le, exp_pos. }
  field; split; [lra | apply Rgt_not_eq, exp_pos].
Qed.

(** The state of a selective state space after t tokens, tokens counted from 0: it is multiplied by a number of the token,
    and the outer product of its key and value is added. *)
Fixpoint state (decay : nat -> R) (K V : nat -> nat -> R) (t : nat) (a c : nat) : R :=
  match t with
  | O => 0
  | S m => decay m * state decay K V m a c + K m a * V m c
  end.

(** What is left of token j after n more tokens: the product of their n numbers. *)
Fixpoint kept (decay : nat -> R) (j n : nat) : R :=
  match n with
  | O => 1
  | S m => kept decay j m * decay (j + S m)%nat
  end.

(** The state is a sum over the tokens, each with what is left of it. *)
Theorem state_is_a_sum decay K V t a c :
  state decay K V t a c = \sum_(j < t) (kept decay j (t - 1 - j) * (K j a * V j c)).
Proof.
  induction t as [|m IH]; [reflexivity|].
  change (decay m * state decay K V m a c + K m a * V m c
          = \sum_(j < m) (kept decay j (S m - 1 - j) * (K j a * V j c)) + kept decay m (S m - 1 - m) * (K m a * V m c)).
  rewrite IH, <- sum_scale_l.
  replace (S m - 1 - m)%nat with 0%nat by lia; simpl (kept decay m 0).
  f_equal; [|ring].
  apply sum_ext; intros j Hj.
  replace (S m - 1 - j)%nat with (S (m - 1 - j)) by lia; simpl.
  replace (j + S (m - 1 - j))%nat with m by lia; ring.
Qed.

(** A selective state space of width r is one product: the answer of token t is the sum over the tokens up to it of their
    values, weighed by the inner product of query and key times what is left of the token. *)
Theorem state_space_is_a_matrix r decay Q K V t c :
  \sum_(a < r) (Q t a * state decay K V (S t) a c)
  = \sum_(j < S t) ((dot r (Q t) (K j) * kept decay j (t - j)) * V j c).
Proof.
  rewrite (sum_ext r _ (fun a => \sum_(j < S t) (Q t a * (kept decay j (S t - 1 - j) * (K j a * V j c))))).
  2: { intros a _; rewrite state_is_a_sum, sum_scale_l; reflexivity. }
  rewrite sum_swap; apply sum_ext; intros j Hj.
  replace (S t - 1 - j)%nat with (t - j)%nat by lia.
  unfold dot; rewrite Rmult_assoc, <- sum_scale_r; apply sum_ext; intros a _; ring.
Qed.

(** What a key k of width r reads from a state. *)
Definition reads (r : nat) (k : nat -> R) (M : nat -> nat -> R) (c : nat) : R := \sum_(a < r) (k a * M a c).

(** A step of the delta rule: the difference of the value from what the key reads is written to the key, times beta. *)
Definition delta_step (r : nat) (beta : R) (k v : nat -> R) (M : nat -> nat -> R) (a c : nat) : R :=
  M a c + beta * k a * (v c - reads r k M c).

Lemma reads_after r beta k v M q c :
  reads r q (delta_step r beta k v M) c = reads r q M c + beta * dot r q k * (v c - reads r k M c).
Proof.
  unfold reads at 1, delta_step.
  rewrite (sum_ext r _ (fun a => q a * M a c + (q a * k a) * (beta * (v c - reads r k M c)))) by (intros; ring).
  rewrite sum_plus, sum_scale_r; unfold reads, dot; ring.
Qed.

(** A key of length 1 then reads its old answer and the new value in the shares 1 - beta and beta: with beta = 1 the
    value alone. *)
Theorem delta_rule_replaces r beta k v M c : dot r k k = 1 ->
  reads r k (delta_step r beta k v M) c = (1 - beta) * reads r k M c + beta * v c.
Proof. intros unit; rewrite reads_after, unit; ring. Qed.

(** A key at a right angle to the one that was written reads what it read before. *)
Theorem delta_rule_spares_right_angles r beta k v M q c : dot r q k = 0 ->
  reads r q (delta_step r beta k v M) c = reads r q M c.
Proof. intros right; rewrite reads_after, right; ring. Qed.

(** With beta = 2 and the value 0, a key of length 1 reads its old answer with the other sign. *)
Theorem delta_rule_flips r k M c : dot r k k = 1 ->
  reads r k (delta_step r 2 k (fun _ => 0) M) c = - reads r k M c.
Proof. intros unit; rewrite (delta_rule_replaces r 2 k (fun _ => 0) M c unit); ring. Qed.
