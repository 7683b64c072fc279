// Aligns and pads heads.
#include "sim/model/head_alignment.h"

#include <fmt/format.h>

#include "sim/ir/counted.h"

namespace bubblescope::inline sim {

namespace {

constexpr std::int64_t kAlignment = 8;
constexpr std::int64_t kFusedStep = 32;
/// Padding below this share of a head is not worth a remark.
constexpr double kSmallPadding = 0.1;

std::int64_t round_up(std::int64_t size, std::int64_t step) {
  return (size + step - 1) / step * step;
}

/// Returns a text such as "144 or 160 would be faster". These are multiples of 16; of the next
/// ones, those that are close enough are named.
std::string faster_sizes(std::int64_t size) {
  constexpr std::int64_t kStep = 16;
  const std::int64_t above = round_up(size, kStep);
  const std::int64_t below = above - kStep;
  return below > 0 ? fmt::format("{} or {}", below, above) : fmt::format("{}", above);
}

}  // namespace

bool are_heads_aligned(const Transformer& model) { return model.head_size % kAlignment == 0; }

std::int64_t pad_head(std::int64_t size) {
  if (size > 256) return size;
  return size > 192 ? 256 : round_up(size, kFusedStep);
}

bool can_fuse_attention(const Transformer& model, bool pytorch) {
  return pytorch || are_heads_aligned(model);
}

std::string describe_heads(const ModelOnDevices& on) {
  const std::int64_t size = on.model.head_size;
  if (on.parallel.flash_attention) {
    const std::int64_t padded = pad_head(size);
    if (on.model.latent ||
        static_cast<double>(padded - size) < kSmallPadding * static_cast<double>(size))
      return {};
    return fmt::format("fused attention computes heads of {} as if they had {}",
                       counted(size, "number"), padded);
  }
  if (are_heads_aligned(on.model)) return {};
  return fmt::format(
      "heads of {} do not align to 8: attention saves its scores, and computes them at {:.2g} % of "
      "the peak; heads of {} would be faster",
      counted(size, "number"), 100 * on.gpu.kernels.unaligned_share, faster_sizes(size));
}

}  // namespace bubblescope::inline sim
