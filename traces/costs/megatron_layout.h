// Megatron's --pipeline-model-parallel-layout: which layers are on which stage.
//
//   Et*3|(tt|)*29,m|L     32 stages: E and 3 t, 29 times 2 t, m, L
//
// E is the embedding, t a transformer layer, m a multi-token prediction layer, L the loss with the
// output layer. | ends a stage, x*n and (...)*n repeat, commas and blanks mean nothing. Stages are
// in the order of the model: stage s is on pipeline rank s mod p, unless a schedule places it
// elsewhere.
#pragma once

#include <string>
#include <string_view>

#include "sim/model/layer_layout.h"

namespace bubblescope::traces {

/// Throws Error with the column of the first letter that is wrong, and for what Megatron refuses:
/// the first layer must be the only E, the last the only L, and every m must follow every t. The
/// flag is what the text was given with.
LayerLayout parse_layout(std::string_view text, std::string_view flag = "`layout`");

/// Writes a layout in its shortest form, without commas: "Et*3|(tt|)*29m|L".
std::string to_string(const LayerLayout& layout);

}  // namespace bubblescope::traces
