// Times mixed orders and improves them by local search.
#include "schedules/search/mixed_backward.h"

#include <algorithm>
#include <array>
#include <utility>

#include "schedules/search/xorshift.h"

namespace bubblescope::schedules {

namespace {

/// The time that one op of a mixed order takes, and the memory that it adds.
struct Effect {
  Nanos duration;
  std::int64_t memory;
};

Effect effect_of(const MixedProblem& problem, std::int32_t rank, Token token) {
  const SearchProblem& of = is_whole(token) ? problem.full : problem.split;
  return {of.duration_of(rank, without_whole(token)), of.memory_of(rank, without_whole(token))};
}

/// Whether a rank stays within its cap and runs every W after its I.
bool is_legal(const MixedProblem& problem, std::int32_t rank, const std::vector<Token>& tokens) {
  std::int64_t held = 0;
  std::vector<std::int32_t> pending(static_cast<std::size_t>(problem.split.chunks), 0);
  for (const Token token : tokens) {
    held += effect_of(problem, rank, token).memory;
    if (held > problem.split.cap[rank]) return false;
    std::int32_t& waiting = pending[static_cast<std::size_t>(chunk_of(without_whole(token)))];
    if (step_of(without_whole(token)) == Step::kInputGrad && !is_whole(token)) ++waiting;
    if (step_of(without_whole(token)) == Step::kWeightGrad && --waiting < 0) return false;
  }
  return true;
}

/// Times an order by repeatedly running every rank as far as its inputs allow.
class MixedTimer {
 public:
  MixedTimer(const MixedProblem& problem, const MixedOrder& order)
      : problem_(problem), split_(problem.split), order_(order) {
    count_.resize(static_cast<std::size_t>(split_.stages()) * 2);
    end_.resize(count_.size() * static_cast<std::size_t>(split_.microbatches));
    position_.resize(order.size());
    free_.resize(order.size());
    first_.resize(order.size());
  }

  std::optional<Nanos> run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::int32_t rank = 0; rank < split_.ranks; ++rank) moved |= advance(rank);
      for (std::int32_t rank = split_.ranks - 1; rank >= 0; --rank) moved |= advance(rank);
    }
    Nanos longest = 0;
    for (std::size_t rank = 0; rank < order_.size(); ++rank) {
      if (position_[rank] < order_[rank].size()) return std::nullopt;
      longest = std::max(longest, free_[rank] - (split_.from_step_start ? 0 : first_[rank]));
    }
    return longest;
  }

 private:
  std::size_t row(std::int32_t stage, Step step) const {
    return static_cast<std::size_t>(stage) * 2 + static_cast<std::size_t>(step);
  }

  std::optional<Nanos> arrival(std::int32_t stage, Step step) const {
    if (step == Step::kWeightGrad) return 0;
    const std::int32_t next = count_[row(stage, step)];
    const bool forward = step == Step::kForward;
    if (!forward && count_[row(stage, Step::kForward)] <= next) return std::nullopt;
    const std::int32_t input = forward ? stage - 1 : stage + 1;
    if (input < 0 || input == split_.stages()) return 0;
    if (count_[row(input, step)] <= next) return std::nullopt;
    return end_[row(input, step) * static_cast<std::size_t>(split_.microbatches) +
                static_cast<std::size_t>(next)] +
           (forward ? split_.forward_latency : split_.backward_latency)[stage];
  }

  bool advance(std::int32_t at) {
    const auto rank = static_cast<std::size_t>(at);
    const std::size_t before = position_[rank];
    for (; position_[rank] < order_[rank].size(); ++position_[rank]) {
      const Token token = order_[rank][position_[rank]];
      const std::int32_t stage = split_.stage(at, without_whole(token));
      const Step step = step_of(without_whole(token));
      const std::optional<Nanos> ready = arrival(stage, step);
      if (!ready) break;
      const Nanos start = std::max(free_[rank], *ready);
      if (position_[rank] == 0) first_[rank] = start;
      free_[rank] = start + effect_of(problem_, at, token).duration;
      if (step == Step::kWeightGrad) continue;
      std::int32_t& count = count_[row(stage, step)];
      end_[row(stage, step) * static_cast<std::size_t>(split_.microbatches) +
           static_cast<std::size_t>(count++)] = free_[rank];
    }
    return position_[rank] > before;
  }

  const MixedProblem& problem_;
  const SearchProblem& split_;
  const MixedOrder& order_;
  std::vector<std::int32_t> count_;    ///< [stage * 2 + step]
  std::vector<Nanos> end_;             ///< same index * microbatches + n
  std::vector<std::size_t> position_;  ///< [rank]
  std::vector<Nanos> free_;
  std::vector<Nanos> first_;
};

/// Generates random changes of one rank's tokens.
class MoveGenerator {
 public:
  explicit MoveGenerator(std::uint64_t seed) : random_(seed) {}

  std::size_t below(std::size_t bound) { return random_.below(bound); }

  /// Returns the changed tokens; empty if nothing changed.
  std::optional<std::vector<Token>> change(std::vector<Token> tokens) {
    const std::size_t at = random_.below(tokens.size());
    const bool is_gradient = step_of(without_whole(tokens[at])) == Step::kInputGrad;
    if (is_gradient && random_.below(2) == 0)
      return is_whole(tokens[at]) ? split(std::move(tokens), at) : join(std::move(tokens), at);
    return move(std::move(tokens), at);
  }

 private:
  static auto place(std::vector<Token>& tokens, std::size_t at) {
    return tokens.begin() + static_cast<std::ptrdiff_t>(at);
  }

  /// Merges an I with the next W of the same chunk into a full backward.
  std::optional<std::vector<Token>> join(std::vector<Token> tokens, std::size_t at) {
    const auto weight = std::find(place(tokens, at), tokens.end(), Token(tokens[at] + 1));
    if (weight == tokens.end()) return std::nullopt;
    tokens.erase(weight);
    tokens[at] = static_cast<Token>(tokens[at] + kWholeBackward);
    return tokens;
  }

  std::optional<std::vector<Token>> split(std::vector<Token> tokens, std::size_t at) {
    tokens[at] = without_whole(tokens[at]);
    const std::size_t behind = at + 1 + random_.below(tokens.size() - at);
    tokens.insert(place(tokens, behind), Token(tokens[at] + 1));
    return tokens;
  }

  std::optional<std::vector<Token>> move(std::vector<Token> tokens, std::size_t at) {
    const std::size_t to = random_.below(2) == 0
                               ? random_.below(tokens.size())
                               : std::min(tokens.size() - 1, at + 1 + random_.below(3));
    if (to == at || tokens[to] == tokens[at]) return std::nullopt;
    const Token token = tokens[at];
    tokens.erase(place(tokens, at));
    tokens.insert(place(tokens, to), token);
    return tokens;
  }

  XorShift64 random_;
};

}  // namespace

SearchProblem MixedProblem::relaxed() const {
  SearchProblem relaxed = split;
  for (std::size_t stage = 0; stage < relaxed.duration.size(); ++stage) {
    auto& [forward, input_grad, weight_grad] = relaxed.duration[stage];
    const Nanos whole = full.duration[stage][1];
    input_grad = std::min(input_grad, whole);
    weight_grad = std::min(weight_grad, whole - input_grad);
    auto& [kept, at_gradient, at_weight] = relaxed.memory[stage];
    if (at_gradient <= 0) continue;
    at_weight += at_gradient;
    at_gradient = 0;
  }
  return relaxed;
}

bool full_can_pay(const MixedProblem& problem, std::int32_t stage) {
  const auto& halves = problem.split.duration[stage];
  return problem.full.duration[stage][1] < halves[1] + halves[2] ||
         problem.split.memory[stage][1] > 0;
}

bool can_mix(const MixedProblem& problem) {
  for (std::int32_t stage = 0; stage < problem.split.stages(); ++stage)
    if (full_can_pay(problem, stage)) return true;
  return false;
}

MixedOrder to_mixed(const SearchProblem& problem, const TokenOrder& order) {
  MixedOrder mixed;
  for (std::int32_t rank = 0; rank < problem.ranks; ++rank) {
    const auto first = order.begin() + std::ptrdiff_t{rank} * problem.ops_per_rank();
    mixed.emplace_back(first, first + problem.ops_per_rank());
    if (!problem.fused) continue;
    for (Token& token : mixed.back())
      if (step_of(token) == Step::kInputGrad) token = static_cast<Token>(token + kWholeBackward);
  }
  return mixed;
}

std::optional<Nanos> measure_mixed(const MixedProblem& problem, const MixedOrder& order) {
  for (std::int32_t rank = 0; rank < problem.split.ranks; ++rank)
    if (!is_legal(problem, rank, order[static_cast<std::size_t>(rank)])) return std::nullopt;
  return MixedTimer(problem, order).run();
}

MixedOrder improve_mixed(const MixedProblem& problem, MixedOrder order,
                         const SearchEffort& effort) {
  std::optional<Nanos> value = measure_mixed(problem, order);
  if (!value) return order;
  MixedOrder best = order;
  Nanos best_so_far = *value;
  // Late acceptance, as in local_search: a change is accepted if it is no worse than an earlier
  // value.
  std::array<Nanos, 50> history;
  history.fill(*value);
  MoveGenerator changer(effort.seed);
  const std::int64_t turns = 1 + effort.climb_ops / problem.split.ops();
  for (std::int64_t turn = 0; turn < turns && !stopped(effort.stop); ++turn) {
    std::vector<Token>& tokens = order[changer.below(order.size())];
    std::optional<std::vector<Token>> changed = changer.change(tokens);
    if (!changed) continue;
    std::swap(tokens, *changed);
    Nanos& late = history[static_cast<std::size_t>(turn) % history.size()];
    const std::optional<Nanos> now = measure_mixed(problem, order);
    if (!now || (*now > late && *now > *value))
      std::swap(tokens, *changed);
    else
      value = now;
    late = std::min(late, *value);
    if (*value >= best_so_far) continue;
    best_so_far = *value;
    best = order;
  }
  return best;
}

Schedule to_schedule(const MixedProblem& problem, const MixedOrder& order) {
  Schedule schedule;
  schedule.rank_of_stage = problem.split.rank_of_stage;
  for (std::int32_t rank = 0; rank < problem.split.ranks; ++rank) {
    RankOrder ops;
    const auto chunks = static_cast<std::size_t>(problem.split.chunks);
    std::vector<std::int32_t> forwards(chunks, 0);
    std::vector<std::int32_t> gradients(chunks, 0);
    std::vector<std::vector<std::int32_t>> split(chunks);  // micro-batches whose W has not run
    for (const Token token : order[static_cast<std::size_t>(rank)]) {
      const std::int32_t stage = problem.split.stage(rank, without_whole(token));
      const auto chunk = static_cast<std::size_t>(chunk_of(without_whole(token)));
      if (is_whole(token)) {
        ops.push_back(backward(stage, gradients[chunk]++));
      } else if (step_of(token) == Step::kForward) {
        ops.push_back(forward(stage, forwards[chunk]++));
      } else if (step_of(token) == Step::kInputGrad) {
        split[chunk].push_back(gradients[chunk]);
        ops.push_back(input_grad(stage, gradients[chunk]++));
      } else {
        ops.push_back(weight_grad(stage, split[chunk].front()));
        split[chunk].erase(split[chunk].begin());
      }
    }
    schedule.order.push_back(std::move(ops));
  }
  return schedule;
}

}  // namespace bubblescope::schedules
