// Parses and writes a network as one flag.
#include "tools/flags/network_options.h"

#include <fmt/format.h>

#include "sim/ir/error.h"
#include "tools/flags/key_values.h"

namespace bubblescope::tools {

UniformNetwork parse_network(std::string_view text) {
  const KeyValues values(text, {"bytes", "link", "between", "per-node", "nic", "ranks-per-nic"});
  UniformNetwork network;
  network.bytes = parse_bytes(values.at("bytes"));
  network.link_gbps = values.positive_number("link");
  network.between_gbps = values.positive_number("between");
  network.ranks_per_node = values.integer("per-node", 1);
  network.nic_gbps = values.positive_number("nic");
  network.ranks_per_nic = values.integer("ranks-per-nic", 1);
  for (const auto& gbps : {network.link_gbps, network.between_gbps, network.nic_gbps})
    if (gbps) rate_of(*gbps);
  if (!network.link_gbps && !network.between_gbps && !network.nic_gbps)
    throw Error("'bytes' take no time without a bandwidth; add link=GBIT/S, between= or nic=");
  if ((network.nic_gbps || network.between_gbps) && !network.ranks_per_node)
    throw Error("'between' and 'nic' are of messages between nodes; add per-node=N");
  if (network.ranks_per_node && !network.nic_gbps && !network.between_gbps)
    throw Error("'per-node' says which messages leave a node; add between=GBIT/S or nic=GBIT/S");
  if (network.ranks_per_nic && !network.nic_gbps)
    throw Error("'ranks-per-nic' needs the NIC's bandwidth; add nic=GBIT/S");
  return network;
}

std::string to_string(const UniformNetwork& network) {
  std::string text = fmt::format("bytes={}B", network.bytes);
  const auto add = [&](const char* key, const auto& value) {
    if (value) text += fmt::format(",{}={}", key, *value);
  };
  add("link", network.link_gbps);
  add("between", network.between_gbps);
  add("per-node", network.ranks_per_node);
  add("nic", network.nic_gbps);
  add("ranks-per-nic", network.ranks_per_nic);
  return text;
}

}  // namespace bubblescope::tools
