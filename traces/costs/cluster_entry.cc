// Reads the "cluster" of a cost file.
#include "traces/costs/cluster_entry.h"

#include <utility>

#include "sim/ir/error.h"
#include "sim/ir/shape.h"
#include "traces/json/json_node.h"

namespace bubblescope::traces {

namespace {

double read_bandwidth(const JsonNode& node) {
  const double bandwidth_gbps = node.positive_number();
  try {
    rate_of(bandwidth_gbps);
  } catch (const Error& error) {
    node.refuse(error.what());
  }
  return bandwidth_gbps;
}

LinkSpeed read_speed(const JsonNode& node) {
  node.expect_keys({"latency", "bandwidth_gbps"});
  LinkSpeed speed;
  if (const auto latency = node.find("latency")) speed.latency = latency->duration();
  if (const auto bandwidth = node.find("bandwidth_gbps"))
    speed.points = read_bandwidths(*bandwidth);
  return speed;
}

constexpr JsonKey kScope{"scope", "carries"};

Scope read_scope(const JsonNode& node) {
  constexpr std::pair<const char*, Scope> kNames[] = {{"all", Scope::kAll},
                                                      {"within_node", Scope::kWithinNode},
                                                      {"between_nodes", Scope::kBetweenNodes}};
  for (const auto& [name, scope] : kNames)
    if (node.text() == name) return scope;
  node.refuse("must be \"all\", \"within_node\" or \"between_nodes\"");
}

DeviceEntry read_device(const JsonNode& node) {
  node.expect_keys({"name", "ranks_per_device", "bandwidth_gbps", kScope, "half_duplex"});
  DeviceEntry device;
  const JsonNode name = node.at("name");
  device.name = name.text();
  const JsonNode ranks = node.at("ranks_per_device");
  device.ranks_per_device = ranks.integer32(1, kMaxRanks);
  const JsonNode bandwidth = node.at("bandwidth_gbps");
  device.capacity = rate_of(read_bandwidth(bandwidth));
  if (const auto scope = node.find(kScope)) device.scope = read_scope(*scope);
  if (const auto half = node.find("half_duplex")) device.half_duplex = half->boolean();
  return device;
}

}  // namespace

std::vector<SpeedPoint> read_bandwidths(const JsonNode& node) {
  if (node.number()) return {{0, read_bandwidth(node)}};
  std::vector<SpeedPoint> points;
  for (std::size_t at = 0; at < node.size(); ++at) {
    const JsonNode pair = node[at];
    if (pair.size() != 2) pair.refuse("must be a size and a bandwidth, such as [\"1MiB\", 200]");
    const JsonNode bytes = pair[0];
    const JsonNode bandwidth = pair[1];
    points.push_back({bytes.bytes(), read_bandwidth(bandwidth)});
    if (at > 0 && points[at].bytes <= points[at - 1].bytes)
      bytes.refuse("must be larger than the size before it");
  }
  if (points.empty()) node.refuse("is empty; give a number, or a size and a number");
  return points;
}

ClusterEntry read_cluster(const JsonNode& node) {
  node.expect_keys({"ranks_per_node", "message_bytes", "within_node", "between_nodes", "devices"});
  ClusterEntry entry;
  if (const auto ranks = node.find("ranks_per_node"))
    entry.ranks_per_node = ranks->integer32(1, kMaxRanks);
  if (const auto bytes = node.find("message_bytes")) {
    entry.message_bytes = bytes->bytes();
    if (*entry.message_bytes > kMaxMessageBytes) bytes->refuse("must be at most 10 TB");
  }
  if (const auto speed = node.find("within_node")) entry.within_node = read_speed(*speed);
  if (const auto speed = node.find("between_nodes")) entry.between_nodes = read_speed(*speed);
  if (const auto devices = node.find("devices"))
    for (std::size_t at = 0; at < devices->size(); ++at)
      entry.devices.push_back(read_device((*devices)[at]));
  return entry;
}

}  // namespace bubblescope::traces
