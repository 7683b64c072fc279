// The all-to-all that sends tokens to their experts, and back.
//
// NCCL's all-to-all carries a copy of a token for each of its experts. A dispatcher like DeepEP
// sends a token once to every node that holds some of its experts, and from there once to every
// rank that does.
#pragma once

#include <cstdint>

#include "sim/ir/units.h"
#include "sim/model/layer_cost.h"

namespace bubblescope::inline sim {

/// A rank sends all its tokens to the experts, each token to several of them.
struct Dispatch {
  double bytes_per_copy = 0;   ///< bytes of all tokens if each goes to one expert
  std::int64_t copies = 1;     ///< experts per token
  std::int64_t max_nodes = 0;  ///< most nodes with experts of one token; 0: any number
  bool once = false;           ///< a token goes once to each node and rank, not once per expert
  double ranks = 0;            ///< ranks with experts of one token; 0: as many as random draws hit
};

/// The expected number of different places among `places` that `draws` independent draws hit.
double estimate_distinct(double places, std::int64_t draws);

/// Returns the expected number of ranks, of so many, that hold experts of a token.
double estimate_ranks_per_token(const Dispatch& dispatch, double ranks);

/// Returns the time of an exchange in one direction, within a node and to other nodes at the same
/// time.
Nanos estimate_exchange_time(const Gpu& gpu, const Dispatch& dispatch, std::int32_t ranks,
                             std::int32_t stride);

/// Whether a model's tokens are dispatched once to every node and rank: as the runtime does it, or
/// because the model limits a token's experts to a few nodes, which only pays with such a
/// dispatcher.
bool dispatches_once(const ModelOnDevices& on);

/// Returns what a rank sends to a layer of experts, of so many bytes per copy of its tokens.
Dispatch dispatch_of(const ModelOnDevices& on, double bytes_per_copy);

/// 16-bit numbers per token that are read and written to bring tokens into the order of their
/// experts, and back, in F or in I. All-to-all: the token's copies before it, and again by expert
/// after it, and both on the way back. Dispatched once: copies are made where they arrive.
double count_permuted(const ModelOnDevices& on);

}  // namespace bubblescope::inline sim
