(** Embeddings: the lookup, its gradient, and the best score of a pair of words.

    Proved: a one-hot row times the table is the row of the table; if a loss has the gradient G in the vectors that
    were looked up, its gradient in the table is X^T G, with the one-hot rows of the text as X; and the loss of a pair
    with n true and q noise occurrences is least at the score ln (n / q).

    Assumed: entries are real; ids are rows of the table; the loss has a gradient; n and q are positive.

    Not said: that the scores of all pairs can be best at once. With vectors shorter than the vocabulary they cannot
    in general. *)

From Coq Require Import Reals Lra Lia.
From Coquelicot Require Import Coquelicot.
From Proofs Require Import sums matrices matrix_gradients gibbs.
Open Scope R_scope.

(** The one-hot rows of a text: 1 in the column of its token. *)
Definition one_hot (ids : nat -> nat) (t k : nat) : R := delta k (ids t).

(** The rows of the table E that a text looks up. *)
Definition lookup (ids : nat -> nat) (E : nat -> nat -> R) (t j : nat) : R := E (ids t) j.

(** The sigmoid. *)
Definition sigmoid (s : R) : R := / (1 + exp (- s)).

(** The loss of a pair that occurs n times in the text and q times as noise, at the score s. *)
Definition pair_loss (n q s : R) : R := - (n * ln (sigmoid s) + q * ln (sigmoid (- s))).

(** A one-hot row times the table is the row of the table that the token looks up. *)
Theorem lookup_is_a_product V ids E t j :
  (ids t < V)%nat -> matmul V (one_hot ids) E t j = lookup ids E t j.
Proof. intros inside; apply (sum_delta V (fun k => E k j)), inside. Qed.

(** If a loss has the gradient G in the vectors of a text of T tokens, its gradient in the table is X^T G. *)
Theorem gradient_of_a_lookup V d T ids loss E G :
  (forall t, (t < T)%nat -> (ids t < V)%nat) ->
  has_gradient T d loss (lookup ids E) G ->
  has_gradient V d (fun Y => loss (lookup ids Y)) E (matmul T (transpose (one_hot ids)) G).
Proof.
  intros inside gradient D.
  replace (entrywise V d _ D) with (entrywise T d G (lookup ids D)).
  - exact (gradient (lookup ids D)).
  - unfold entrywise, matmul, transpose, one_hot, lookup; symmetry.
    transitivity (\sum_(i < V) (\sum_(t < T) (\sum_(j < d) (delta i (ids t) * (G t j * D i j))))).
    + apply sum_ext; intros i _; rewrite sum_swap; apply sum_ext; intros j _.
      rewrite <- sum_scale_r; apply sum_ext; intros t _; ring.
    + rewrite sum_swap; apply sum_ext; intros t Ht; rewrite sum_swap; apply sum_ext; intros j _.
      apply (sum_delta V (fun i => G t j * D i j)), inside, Ht.
Qed.

Lemma sigmoid_range s : 0 < sigmoid s < 1.
Proof.
  unfold sigmoid; pose proof (exp_pos (- s)); split.
  - apply Rinv_0_lt_compat; lra.
  - rewrite <- Rinv_1 at 2; apply Rinv_lt_contravar; lra.
Qed.

Lemma sigmoid_opp s : sigmoid (- s) = 1 - sigmoid s.
Proof.
  unfold sigmoid; rewrite Ropp_involutive, exp_Ropp; pose proof (exp_pos s); field; lra.
Qed.

Lemma sigmoid_of_log n q : 0 < n -> 0 < q -> sigmoid (ln (n / q)) = n / (n + q).
Proof.
  intros Hn Hq; assert (0 < n / q) by (apply Rdiv_lt_0_compat; lra).
  unfold sigmoid; rewrite exp_Ropp, exp_ln by assumption; field; lra.
Qed.

(** No score of a pair has a smaller loss than the logarithm of true over noise. *)
Theorem best_score n q s : 0 < n -> 0 < q -> pair_loss n q (ln (n / q)) <= pair_loss n q s.
Proof.
  intros Hn Hq; unfold pair_loss; rewrite !sigmoid_opp, sigmoid_of_log by assumption.
  pose proof (sigmoid_range s) as [low high]; set (p := sigmoid s) in *.
  assert (0 < n / (n + q)) by (apply Rdiv_lt_0_compat; lra).
  replace (1 - n / (n + q)) with (q / (n + q)) by (field; lra).
  assert (0 < q / (n + q)) by (apply Rdiv_lt_0_compat; lra).
  pose proof (ln_below_line (p / (n / (n + q)))) as first.
  pose proof (ln_below_line ((1 - p) / (q / (n + q)))) as second.
  rewrite ln_div in first by lra; rewrite ln_div in second by lra.
  assert (0 < p / (n / (n + q))) by (apply Rdiv_lt_0_compat; lra).
  assert (0 < (1 - p) / (q / (n + q))) by (apply Rdiv_lt_0_compat; lra).
  assert (n * (p / (n / (n + q))) = (n + q) * p) by (field; lra).
  assert (q * ((1 - p) / (q / (n + q))) = (n + q) * (1 - p)) by (field; lra).
  assert (n * (ln p - ln (n / (n + q))) <= (n + q) * p - n) by nra.
  assert (q * (ln (1 - p) - ln (q / (n + q))) <= (n + q) * (1 - p) - q) by nra.
  nra.
Qed.
