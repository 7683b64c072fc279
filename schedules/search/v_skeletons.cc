// Builds skeletons that follow ZB-V.
#include "schedules/search/v_skeletons.h"

#include <array>
#include <initializer_list>

namespace bubblescope::schedules {

namespace {

constexpr int kShares = 12;
constexpr int kWholeShare = 8;  ///< the share that is ZB-V itself

/// Writes one rank; leaves out micro-batches that do not exist.
class RankWriter {
 public:
  RankWriter(Skeleton& skeleton, std::int32_t microbatches)
      : skeleton_(skeleton), microbatches_(microbatches) {}

  void repeat(std::int32_t times, std::initializer_list<Token> tokens) {
    for (; times > 0; --times)
      for (const Token token : tokens)
        if (count_[token] < microbatches_) {
          ++count_[token];
          skeleton_.push_back(token);
        }
  }

 private:
  Skeleton& skeleton_;
  std::int32_t microbatches_;
  std::array<std::int32_t, 2 * kSteps> count_{};
};

}  // namespace

std::vector<Skeleton> make_v_skeletons(const SearchProblem& problem) {
  const Token forward0 = token_of(0, Step::kForward);
  const Token forward1 = token_of(1, Step::kForward);
  const Token gradient0 = token_of(0, Step::kInputGrad);
  const Token gradient1 = token_of(1, Step::kInputGrad);
  std::vector<Skeleton> skeletons;
  for (int share = 0; share <= kShares; ++share) {
    Skeleton skeleton;
    for (std::int32_t rank = 0; rank < problem.ranks; ++rank) {
      const std::int32_t below = problem.ranks - 1 - rank;
      const auto part = [&](std::int32_t count) {
        return (count * share + kWholeShare / 2) / kWholeShare;
      };
      RankWriter writer(skeleton, problem.microbatches);
      writer.repeat(1 + part(2 * below), {forward0});
      writer.repeat(part(rank), {forward1, forward0});
      writer.repeat(1 + part(below), {forward1, gradient1});
      writer.repeat(problem.microbatches, {forward0, gradient0, forward1, gradient1});
      writer.repeat(problem.microbatches, {gradient0, gradient1});
    }
    skeletons.push_back(std::move(skeleton));
  }
  return skeletons;
}

}  // namespace bubblescope::schedules
