// Routes consist of the link between two ranks and the devices at its ends.
#include "sim/model/traffic.h"

#include <algorithm>
#include <map>
#include <utility>

#include "sim/ir/counted.h"
#include "sim/ir/error.h"
#include "sim/ir/range.h"
#include "sim/model/message_costs.h"

namespace bubblescope::inline sim {

namespace {

bool is_in_scope(Scope what, bool same_node) {
  return what == Scope::kAll || (what == Scope::kWithinNode) == same_node;
}

/// One direction of a device or a link.
enum class Direction : std::uint8_t { kOut, kIn };

class Router {
 public:
  Router(const Cluster& cluster, Traffic& traffic)
      : cluster_(cluster), traffic_(traffic), devices_of_rank_(cluster.node_of_rank.size()) {
    for (std::size_t at = 0; at < cluster.devices.size(); ++at)
      for (const std::int32_t rank : cluster.devices[at].ranks)
        devices_of_rank_[rank].push_back(at);
  }

  /// The common properties of all messages of one size between two ranks.
  struct Route {
    Nanos latency = 0;
    Load load = 0;
    Rate max_rate = 0;
    std::uint32_t path = 0;
  };

  Route route(std::int32_t from, std::int32_t to, Bytes bytes) {
    if (bytes > kMaxMessageBytes)
      throw Error("a message of over 10 TB cannot be sent through a cluster; correct its bytes");
    const auto [known, is_new] = paths_.try_emplace({from, to});
    if (is_new) known->second = lay(from, to);
    const Path& path = known->second;
    const LinkSpeed& speed = *path.speed;
    if (path.capacity == 0) return {speed.latency, 0, 0, path.number};
    Route route{speed.latency, bytes * kLoadPerByte, path.capacity, path.number};
    if (!speed.points.empty()) route.max_rate = std::min(route.max_rate, speed.rate(bytes));
    return route;
  }

 private:
  /// The resources between two ranks, whatever the message.
  struct Path {
    const LinkSpeed* speed = nullptr;
    Rate capacity = 0;  ///< the smallest of its resources; 0: there are none
    std::uint32_t number = 0;
  };

  Path lay(std::int32_t from, std::int32_t to) {
    const LinkSpeed& speed = cluster_.speed(from, to);
    std::vector<std::uint32_t> path;
    if (!speed.points.empty())
      path.push_back(add_resource(
          {"link " + std::to_string(from) + ">" + std::to_string(to), speed.capacity()}));
    add_devices(from, to, path);
    Path laid{&speed, 0, static_cast<std::uint32_t>(traffic_.path_begin.size() - 1)};
    for (const std::uint32_t resource : path) {
      const Rate capacity = traffic_.resources[resource].capacity;
      laid.capacity = laid.capacity == 0 ? capacity : std::min(laid.capacity, capacity);
    }
    traffic_.path_resources.insert(traffic_.path_resources.end(), path.begin(), path.end());
    traffic_.path_begin.push_back(static_cast<std::uint32_t>(traffic_.path_resources.size()));
    return laid;
  }

  void add_devices(std::int32_t from, std::int32_t to, std::vector<std::uint32_t>& path) {
    const bool same_node = cluster_.same_node(from, to);
    const auto add = [&](std::int32_t rank, Direction direction) {
      for (const std::size_t device : devices_of_rank_[rank]) {
        if (!is_in_scope(cluster_.devices[device].scope, same_node)) continue;
        const std::uint32_t resource = resource_of(device, direction);
        if (std::find(path.begin(), path.end(), resource) == path.end()) path.push_back(resource);
      }
    };
    add(from, Direction::kOut);
    add(to, Direction::kIn);
  }

  std::uint32_t resource_of(std::size_t device, Direction direction) {
    const SharedDevice& shared = cluster_.devices[device];
    if (shared.half_duplex) direction = Direction::kOut;
    const auto [known, is_new] = device_resources_.try_emplace({device, direction}, 0);
    if (is_new) {
      const char* end = direction == Direction::kOut ? " out" : " in";
      known->second =
          add_resource({shared.name + (shared.half_duplex ? "" : end), shared.capacity});
    }
    return known->second;
  }

  std::uint32_t add_resource(Resource resource) {
    traffic_.resources.push_back(std::move(resource));
    return static_cast<std::uint32_t>(traffic_.resources.size() - 1);
  }

  const Cluster& cluster_;
  Traffic& traffic_;
  std::vector<std::vector<std::size_t>> devices_of_rank_;
  std::map<std::pair<std::int32_t, std::int32_t>, Path> paths_;  ///< by source, destination
  std::map<std::pair<std::size_t, Direction>, std::uint32_t> device_resources_;
};

}  // namespace

KindWeights equal_kind_weights() {
  KindWeights weights;
  for (auto& row : weights) row.fill(1);
  return weights;
}

Traffic route_messages(const Program& program, std::span<const Nanos> durations,
                       const Cluster& cluster) {
  if (cluster.node_of_rank.size() != static_cast<std::size_t>(program.ranks))
    throw Error("the cluster has " + counted(cluster.node_of_rank.size(), "rank") + " for " +
                std::to_string(program.ranks) + "; place each of them on a node");
  Traffic traffic;
  traffic.fixed.assign(durations.begin(), durations.end());
  Router router(cluster, traffic);
  Bytes sent = 0;
  for (InstructionId id = 0; id < program.size(); ++id) {
    const Instruction& instruction = program.instructions[id];
    if (!is_message(instruction)) continue;
    const std::int32_t from = instruction.rank;
    const std::int32_t to = instruction.peer;
    const Bytes bytes = cluster.bytes(instruction.op, from, to);
    const Router::Route route = router.route(from, to, bytes);
    traffic.fixed[id] = route.latency;
    sent = add_in_range(sent, bytes, "the messages of a step");
    if (route.load > 0) traffic.flows.push_back({id, route.load, route.max_rate, route.path});
  }
  return traffic;
}

Nanos uncontended_message_time(const Cluster& cluster, std::int32_t from, std::int32_t to) {
  return uncontended_message_time(cluster, from, to, cluster.bytes(from, to));
}

Nanos uncontended_message_time(const Cluster& cluster, std::int32_t from, std::int32_t to,
                               Bytes bytes) {
  Traffic scratch;
  const Router::Route route = Router(cluster, scratch).route(from, to, bytes);
  return route.latency + (route.load > 0 ? uncontended_time(route.load, route.max_rate) : 0);
}

CostModel with_uncontended_messages(CostModel costs, const Cluster& cluster,
                                    const Schedule& schedule) {
  const std::int32_t ranks = schedule.shape.ranks;
  costs.message_between.resize(static_cast<std::size_t>(std::int64_t{ranks} * ranks),
                               costs.message);
  const auto set = [&](std::int32_t from, std::int32_t to) {
    if (from == to) return;
    costs.message_between[static_cast<std::size_t>(std::int64_t{from} * ranks + to)] =
        uncontended_message_time(cluster, from, to);
  };
  const auto set_between = [&](std::int32_t stage, std::int32_t reader) {
    for (std::int32_t near = 0; near < schedule.replicas(stage); ++near)
      for (std::int32_t far = 0; far < schedule.replicas(reader); ++far) {
        const std::int32_t from = schedule.rank_of_stage[stage] + near;
        const std::int32_t to = schedule.rank_of_stage[reader] + far;
        set(from, to);
        set(to, from);
      }
  };
  for (std::int32_t stage = 0; stage < schedule.stages(); ++stage)
    for_each_reader(schedule, stage, [&](std::int32_t reader) { set_between(stage, reader); });
  // Bytes are flows.
  costs.byte_time = 0;
  costs.byte_time_between.clear();
  costs.messages = {};
  if (cluster.sizes.empty()) return costs;
  Traffic scratch;
  Router router(cluster, scratch);
  costs.messages = make_message_tensor<MessageCost>(
      schedule, true, [&](MessageCost& cost, const StageMessage& message) {
        const Router::Route route = router.route(
            message.from, message.to, cluster.bytes(send_of(message), message.from, message.to));
        raise_to(message.forward ? cost.forward : cost.backward,
                 route.latency +
                     (route.load > 0 ? uncontended_time(route.load, route.max_rate) : Nanos{0}));
      });
  return costs;
}

}  // namespace bubblescope::inline sim
