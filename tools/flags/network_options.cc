// Builds a cluster from one flag.
#include "tools/flags/network_options.h"

#include <fmt/format.h>

#include "sim/ir/error.h"
#include "tools/flags/key_values.h"
#include "traces/costs/cluster_entry.h"

namespace bubblescope::tools {

namespace {

LinkSpeed speed_of(Nanos latency, const std::optional<double>& gbps) {
  LinkSpeed speed{latency, {}};
  if (gbps) speed.points.push_back({0, *gbps});
  return speed;
}

}  // namespace

NetworkOptions parse_network(std::string_view text) {
  const KeyValues values(text, {"bytes", "link", "between", "per-node", "nic", "ranks-per-nic"});
  NetworkOptions options;
  options.bytes = parse_bytes(values.at("bytes"));
  options.link_gbps = values.positive_number("link");
  options.between_gbps = values.positive_number("between");
  options.ranks_per_node = values.integer("per-node", 1);
  options.nic_gbps = values.positive_number("nic");
  options.ranks_per_nic = values.integer("ranks-per-nic", 1);
  for (const auto& gbps : {options.link_gbps, options.between_gbps, options.nic_gbps})
    if (gbps) rate_of(*gbps);
  if ((options.nic_gbps || options.between_gbps) && !options.ranks_per_node)
    throw Error("'between' and 'nic' are of messages between nodes; add per-node=N");
  if (options.ranks_per_nic && !options.nic_gbps)
    throw Error("'ranks-per-nic' needs the NIC's bandwidth; add nic=GBIT/S");
  return options;
}

std::string to_string(const NetworkOptions& options) {
  std::string text = fmt::format("bytes={}B", options.bytes);
  const auto add = [&](const char* key, const auto& value) {
    if (value) text += fmt::format(",{}={}", key, *value);
  };
  add("link", options.link_gbps);
  add("between", options.between_gbps);
  add("per-node", options.ranks_per_node);
  add("nic", options.nic_gbps);
  add("ranks-per-nic", options.ranks_per_nic);
  return text;
}

Cluster cluster_of(const NetworkOptions& options, Nanos latency, std::int32_t ranks) {
  traces::ClusterEntry entry;
  entry.ranks_per_node = options.ranks_per_node;
  entry.message_bytes = options.bytes;
  entry.within_node = speed_of(latency, options.link_gbps);
  entry.between_nodes =
      speed_of(latency, options.between_gbps ? options.between_gbps : options.link_gbps);
  if (options.nic_gbps) {
    traces::DeviceEntry nic;
    nic.name = "nic";
    nic.ranks_per_device = options.ranks_per_nic.value_or(*options.ranks_per_node);
    nic.capacity = rate_of(*options.nic_gbps);
    nic.scope = Scope::kBetweenNodes;
    entry.devices.push_back(nic);
  }
  return traces::place(entry, {}, 0, ranks);
}

}  // namespace bubblescope::tools
