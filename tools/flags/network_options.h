// `--network`: messages with bytes, links and NICs, without a cost file.
#pragma once

#include <string>
#include <string_view>

#include "sim/model/uniform_network.h"

namespace bubblescope::tools {

/// Parses "bytes=64MiB,link=3600,per-node=4,between=400,nic=400,ranks-per-nic=2". Throws Error for
/// an unknown key, naming the nearest known one.
UniformNetwork parse_network(std::string_view text);

/// Returns the inverse of parse_network().
std::string to_string(const UniformNetwork& network);

}  // namespace bubblescope::tools
