// The order in which an overlapped pair interleaves the parts of its two ops.
//
// It lists the parts of one layer of each op; the next layers follow in the same order. "F." stands
// for the pair's forward, "B." for its backward. Each lane runs its parts in this order. No part
// after a barrier, "|", starts before all parts above it have ended.
//
//   "dualpipe"   compute  F.attn    | B.mlp B.mlp_w F.mlp   | B.attn B.attn_w |
//                expert   B.combine | F.dispatch B.dispatch | F.combine       |
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace bubblescope::inline sim {

/// A part in an order.
struct OrderedPart {
  bool of_backward = false;
  std::string name;
  bool ends_window = false;  ///< a barrier follows
};

struct PairOrder {
  std::string name;  ///< of a known order; else empty
  std::vector<OrderedPart> parts = {};
  bool skips_missing = false;  ///< it may list parts that an op lacks
};

/// Parses an order word by word. Throws Error for a word that names no part, a part that is listed
/// twice, and a barrier without parts above it.
PairOrder parse_pair_order(const std::vector<std::string>& words);

/// The order of this name. Throws Error if there is none, with the names of all and with `others`,
/// such as "series, ", which the caller takes as well.
PairOrder find_pair_order(std::string_view name, std::string_view others = {});

/// An order of the parts of a model's layer. Parts that only some stages have, such as the head's,
/// come before and after the layer unless they are listed. Throws Error as parse_pair_order does,
/// and for names of no part of a model.
PairOrder parse_model_order(const std::vector<std::string>& words);

}  // namespace bubblescope::inline sim
