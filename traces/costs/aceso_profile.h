// Aceso's profiles (Liu et al., EuroSys 2024): a csv with a row per operator, times in us, sizes in
// MiB.
//
//   op_name,forward-compute,backward-compute,input_size,output_size,weights,activations,...
//   encoder-embedding,173.631,1486.725,0.008,8.000,208.000,12.000,0.000,220.000
//   enc-attention-qkv,708.879,1296.924,16.000,32.000,24.000,24.000,20.000,202.000
//
// Columns are found by name; further columns may follow. The operators of a layer appear once;
// their names begin with enc- or dec-.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "sim/model/layer_graph.h"

namespace bubblescope::traces {

bool is_aceso_profile(std::string_view text);

/// Returns the operators as a chain, with each run of enc- or dec- rows repeated `repeats` times.
/// Throws Error with file, line and text of the first fault.
LayerGraph parse_aceso_profile(std::string_view text, const std::string& file,
                               std::int32_t repeats);

}  // namespace bubblescope::traces
