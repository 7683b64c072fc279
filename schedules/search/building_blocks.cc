// Builds the family of V-shaped building blocks.
#include "schedules/search/building_blocks.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace bubblescope::schedules {

namespace {

constexpr std::int32_t kBlockPeriod = 6;  ///< F, I and W of two chunks

unsigned residues(std::int32_t slot, std::int32_t width) {
  unsigned taken = 0;
  for (; width > 0; --width, ++slot) taken |= 1u << (slot % kBlockPeriod);
  return taken;
}

}  // namespace

std::int32_t BuildingBlock::lifespan() const {
  std::int32_t peak_so_far = 0;
  for (const Passes& at : ranks)
    peak_so_far =
        std::max(peak_so_far, at.gradient[0] - at.forward[0] + at.gradient[1] - at.forward[1]);
  return peak_so_far;
}

BuildingBlock make_v_block(const BlockShape& shape) {
  BuildingBlock block;
  block.ranks.resize(shape.hops.size());
  const std::size_t last = shape.hops.size() - 1;
  std::int32_t slot = 0;
  for (std::size_t rank = 0; rank <= last; ++rank)
    block.ranks[rank].forward[0] = slot += rank > 0 ? shape.hops[rank][0] : 0;
  slot += shape.turn[0];
  for (std::size_t rank = last + 1; rank-- > 0;)
    block.ranks[rank].forward[1] = slot += rank < last ? shape.hops[rank + 1][1] : 0;
  slot += shape.turn[1];
  for (std::size_t rank = 0; rank <= last; ++rank)
    block.ranks[rank].gradient[1] = slot += rank > 0 ? shape.hops[rank][2] : 0;
  slot += shape.turn[2];
  for (std::size_t rank = last + 1; rank-- > 0;)
    block.ranks[rank].gradient[0] = slot += rank < last ? shape.hops[rank + 1][3] : 0;
  return block;
}

bool repeats(const BuildingBlock& block, bool fused, const std::array<std::int32_t, 3>& rests) {
  const std::int32_t width = fused ? 2 : 1;
  const std::int32_t second = rests[0] + rests[1];
  return std::all_of(block.ranks.begin(), block.ranks.end(), [&](const BuildingBlock::Passes& at) {
    const unsigned first_forward = residues(at.forward[0], 1);
    const unsigned forwards = first_forward | residues(at.forward[1] + rests[0], 1);
    const unsigned first_gradient = residues(at.gradient[1] + second, width);
    const unsigned last_gradient = residues(at.gradient[0] + second + rests[2], width);
    return forwards != first_forward && !(forwards & first_gradient) &&
           !((forwards | first_gradient) & last_gradient);
  });
}

Skeleton unroll(const SearchProblem& problem, const BuildingBlock& block) {
  struct Timed {
    std::int64_t slot;
    Token token;
  };
  Skeleton skeleton;
  std::vector<Timed> timed;
  for (const BuildingBlock::Passes& at : block.ranks) {
    timed.clear();
    for (std::int64_t slot = 0; slot < std::int64_t{kBlockPeriod} * problem.microbatches;
         slot += kBlockPeriod)
      for (std::int32_t chunk = 0; chunk < 2; ++chunk) {
        timed.push_back({at.forward[chunk] + slot, token_of(chunk, Step::kForward)});
        timed.push_back({at.gradient[chunk] + slot, token_of(chunk, Step::kInputGrad)});
      }
    std::sort(timed.begin(), timed.end(),
              [](const Timed& a, const Timed& b) { return a.slot < b.slot; });
    for (const Timed& op : timed) skeleton.push_back(op.token);
  }
  return skeleton;
}

TokenOrder unroll_and_add_weights(const SearchProblem& problem, const BuildingBlock& block) {
  TokenOrder order;
  std::vector<std::optional<Token>> slots;
  for (const BuildingBlock::Passes& at : block.ranks) {
    slots.assign(static_cast<std::size_t>(at.gradient[0] + at.gradient[1] + at.forward[1] +
                                          2 * kBlockPeriod * problem.microbatches),
                 std::nullopt);
    for (std::int32_t slot = 0; slot < kBlockPeriod * problem.microbatches; slot += kBlockPeriod)
      for (std::int32_t chunk = 0; chunk < 2; ++chunk) {
        slots[at.forward[chunk] + slot] = token_of(chunk, Step::kForward);
        slots[at.gradient[chunk] + slot] = token_of(chunk, Step::kInputGrad);
      }
    std::vector<Token> pending;
    std::size_t first_pending = 0;
    for (const std::optional<Token>& slot : slots) {
      if (slot) {
        order.push_back(*slot);
        if (step_of(*slot) == Step::kInputGrad) pending.push_back(static_cast<Token>(*slot + 1));
      } else if (first_pending < pending.size()) {
        order.push_back(pending[first_pending++]);
      }
    }
  }
  return order;
}

std::vector<BuildingBlock> select_v_blocks(std::int32_t ranks, bool fused, std::int64_t longest,
                                           std::size_t count) {
  std::vector<BlockShape> shapes =
      fused ? list_fused_block_shapes(ranks) : list_split_block_shapes(ranks);
  std::vector<std::pair<std::int32_t, std::size_t>> found;  // minus the lifespan, the shape's index
  for (std::size_t shape = 0; shape < shapes.size(); ++shape) {
    const std::int32_t lifespan = make_v_block(shapes[shape]).lifespan();
    if (lifespan <= longest) found.push_back({-lifespan, shape});
  }
  std::sort(found.begin(), found.end());
  const std::size_t taken = std::min(count, found.size());
  std::vector<BuildingBlock> blocks;
  if (!fused)
    for (const BlockShape& shape : list_published_block_shapes(ranks))
      if (BuildingBlock block = make_v_block(shape); block.lifespan() <= longest)
        blocks.push_back(std::move(block));
  for (std::size_t at = 0; at < taken; ++at)
    blocks.push_back(make_v_block(shapes[found[at * found.size() / taken].second]));
  return blocks;
}

}  // namespace bubblescope::schedules
