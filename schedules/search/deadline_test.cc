// Computes heads and tails, and checks every rank as one machine.
#include "schedules/search/deadline_test.h"

#include <algorithm>
#include <limits>

namespace bubblescope::schedules {

namespace {

constexpr Nanos kNever = std::numeric_limits<Nanos>::max() / 4;

std::size_t row_of(std::int32_t stage, Step step) {
  return static_cast<std::size_t>(stage) * kSteps + static_cast<std::size_t>(step);
}

}  // namespace

Progress::Progress(const SearchProblem& problem)
    : count(static_cast<std::size_t>(problem.stages()) * kSteps, 0),
      end(count.size() * static_cast<std::size_t>(problem.microbatches), 0),
      free(static_cast<std::size_t>(problem.ranks), 0) {}

std::optional<std::vector<Nanos>> compute_first_starts(const SearchProblem& problem) {
  std::vector<std::optional<Nanos>> start(static_cast<std::size_t>(problem.ranks));
  Nanos arrival = 0;
  for (std::int32_t stage = 0, found = 0; found < problem.ranks; ++stage) {
    std::optional<Nanos>& own = start[problem.rank_of_stage[stage]];
    if (own) return std::nullopt;
    if (stage > 0) arrival += problem.duration[stage - 1][0] + problem.forward_latency[stage];
    own = arrival;
    ++found;
  }
  std::vector<Nanos> starts;
  for (const std::optional<Nanos>& own : start) starts.push_back(*own);
  return starts;
}

DeadlineTest::DeadlineTest(const SearchProblem& problem)
    : problem_(problem),
      room_after_(static_cast<std::size_t>(problem.stages())),
      deadline_base_(static_cast<std::size_t>(problem.ranks), 0),
      end_(static_cast<std::size_t>(problem.stages()) * kSteps * problem.microbatches),
      due_(end_.size()) {
  for (std::int32_t stage = 0; stage < problem.stages(); ++stage)
    rows_forward_.push_back(row_of(stage, Step::kForward));
  for (std::int32_t stage = problem.stages(); stage-- > 0;) {
    rows_forward_.push_back(row_of(stage, Step::kInputGrad));
    if (!problem.fused) rows_forward_.push_back(row_of(stage, Step::kWeightGrad));
  }
  for (std::int32_t rank = 0; rank < problem.ranks; ++rank) add_memory_edges(rank);
  if (problem.from_step_start) return;
  if (const auto starts = compute_first_starts(problem))
    deadline_base_ = *starts;
  else
    deadline_base_.assign(deadline_base_.size(), kNever);
}

// When forward n of chunk c runs, all chunks up to c hold n+1 forwards, minus what gradients have
// released; and the gradient of a lower chunk comes after that of chunk c. So at least
//   k = n+1 - floor(cap / sum of the chunks' F)
// micro-batches have run their I on chunk c, provided that only F takes memory. On the first chunk
// W count too: if n F's and I's hold more than the cap, W's must release the rest.
void DeadlineTest::add_memory_edges(std::int32_t rank) {
  const std::int64_t cap = problem_.cap[rank];
  std::int64_t kept = 0;
  for (std::int32_t chunk = 0; chunk < problem_.chunks; ++chunk) {
    const std::int32_t stage = problem_.stage(rank, token_of(chunk, Step::kForward));
    const auto& [forward, input_grad, weight_grad] = problem_.memory[stage];
    if (forward <= 0 || input_grad > 0 || weight_grad > 0 || cap > kNever) return;
    kept += forward;
    const std::int64_t max_forwards_held = cap / kept;
    if (max_forwards_held < problem_.microbatches)
      room_after_[stage].push_back(
          {row_of(stage, Step::kInputGrad), static_cast<std::int32_t>(max_forwards_held)});
    if (chunk > 0 || problem_.fused || weight_grad == 0) continue;
    // (n+1) F + n I + j W <= cap, and F + I = -W: j >= n - (cap - F) / -W.
    const std::int64_t lead = (cap - forward) / -weight_grad + 1;
    if (lead < problem_.microbatches)
      room_after_[stage].push_back(
          {row_of(stage, Step::kWeightGrad), static_cast<std::int32_t>(lead)});
  }
}

void DeadlineTest::set_value(Nanos value) {
  value_ = value;
  set_due();
}

/// Calls visit(row, microbatch, latency) for every op that an op waits for.
template <class Visit>
void DeadlineTest::for_each_awaited(std::size_t row, std::int32_t microbatch, Visit visit) const {
  const std::size_t stage = row / kSteps;
  if (microbatch > 0) visit(row, microbatch - 1, Nanos{0});
  if (row % kSteps > 0) visit(row - 1, microbatch, Nanos{0});
  if (row % kSteps == 0 && stage > 0)
    visit(row - kSteps, microbatch, problem_.forward_latency[stage]);
  if (row % kSteps == 1 && stage + 1 < static_cast<std::size_t>(problem_.stages()))
    visit(row + kSteps, microbatch, problem_.backward_latency[stage]);
  if (row % kSteps == 0)
    for (const MemoryEdge& edge : room_after_[stage])
      if (microbatch >= edge.lead) visit(edge.row, microbatch - edge.lead, Nanos{0});
}

Nanos DeadlineTest::compute_earliest_start(const Progress& progress, std::size_t row,
                                           std::int32_t microbatch) const {
  Nanos start = progress.free[problem_.rank_of_stage[row / kSteps]];
  for_each_awaited(row, microbatch, [&](std::size_t before, std::int32_t which, Nanos latency) {
    start = std::max(start, end_[at(before, which)] + latency);
  });
  return start;
}

void DeadlineTest::set_earliest(const Progress& progress) {
  for (std::int32_t microbatch = 0; microbatch < problem_.microbatches; ++microbatch)
    for (const std::size_t row : rows_forward_)
      end_[at(row, microbatch)] =
          microbatch < progress.count[row]
              ? progress.end[at(row, microbatch)]
              : compute_earliest_start(progress, row, microbatch) + duration(row);
}

/// An op must end before the latest start of every op that waits for it.
void DeadlineTest::tighten(std::size_t row, std::int32_t microbatch) {
  const Nanos latest_start = due_[at(row, microbatch)] - duration(row);
  for_each_awaited(row, microbatch, [&](std::size_t before, std::int32_t which, Nanos latency) {
    Nanos& due = due_[at(before, which)];
    due = std::min(due, latest_start - latency);
  });
}

void DeadlineTest::set_due() {
  for (const std::size_t row : rows_forward_)
    for (std::int32_t microbatch = 0; microbatch < problem_.microbatches; ++microbatch)
      due_[at(row, microbatch)] = deadline_base_[problem_.rank_of_stage[row / kSteps]] + value_;
  for (std::int32_t microbatch = problem_.microbatches; microbatch-- > 0;)
    for (auto row = rows_forward_.rbegin(); row != rows_forward_.rend(); ++row)
      tighten(*row, microbatch);
}

std::vector<DeadlineTest::Queue> DeadlineTest::collect_queues(const Progress& progress,
                                                              std::int32_t rank) const {
  std::vector<Queue> queues;
  for (std::int32_t token = 0; token < problem_.tokens(); ++token) {
    if (problem_.fused && step_of(static_cast<Token>(token)) == Step::kWeightGrad) continue;
    const std::size_t row =
        row_of(problem_.stage(rank, static_cast<Token>(token)), step_of(static_cast<Token>(token)));
    if (progress.count[row] < problem_.microbatches)
      queues.push_back({row, progress.count[row], duration(row)});
  }
  return queues;
}

bool DeadlineTest::test_rank(const Progress& progress, std::int32_t rank) const {
  if (progress.free[rank] > deadline_base_[rank] + value_) return false;
  std::vector<Queue> queues = collect_queues(progress, rank);
  for (Nanos now = progress.free[rank]; !queues.empty();) {
    Queue* urgent = nullptr;
    Nanos next_release = kNever;
    for (Queue& queue : queues) {
      const Nanos release = end_[at(queue.row, queue.next)] - duration(queue.row);
      if (release > now)
        next_release = std::min(next_release, release);
      else if (urgent == nullptr ||
               due_[at(queue.row, queue.next)] < due_[at(urgent->row, urgent->next)])
        urgent = &queue;
    }
    if (urgent == nullptr) {
      now = next_release;
      continue;
    }
    const Nanos run = std::min(urgent->left, next_release - now);
    now += run;
    urgent->left -= run;
    if (urgent->left > 0) continue;
    if (now > due_[at(urgent->row, urgent->next)]) return false;
    urgent->left = duration(urgent->row);
    if (++urgent->next == problem_.microbatches)
      queues.erase(queues.begin() + (urgent - &queues[0]));
  }
  return true;
}

bool DeadlineTest::passes(const Progress& progress) {
  set_earliest(progress);
  for (std::int32_t rank = 0; rank < problem_.ranks; ++rank)
    if (!test_rank(progress, rank)) return false;
  return true;
}

Nanos value_lower_bound(const SearchProblem& problem, Nanos reached) {
  DeadlineTest test(problem);
  const Progress none(problem);
  Nanos failing = -1;
  Nanos passing = reached;
  while (passing - failing > 1) {
    const Nanos middle = failing + (passing - failing) / 2;
    test.set_value(middle);
    (test.passes(none) ? passing : failing) = middle;
  }
  return passing;
}

}  // namespace bubblescope::schedules
