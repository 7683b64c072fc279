// Reads Chakra's execution traces (schema/protobuf/et_def.proto of mlcommons/chakra): a
// GlobalMetadata and then Nodes, each preceded by its length.
#include <fmt/format.h>

#include <charconv>
#include <map>
#include <unordered_map>
#include <utility>

#include "sim/ir/counted.h"
#include "traces/files/chakra_fields.h"
#include "traces/files/protobuf_reader.h"
#include "traces/files/quote.h"
#include "traces/workloads/workload.h"

namespace bubblescope::traces {

namespace {

/// A node before its dependencies, which are ids, are looked up.
struct Node {
  std::uint64_t id = 0;
  std::string name;
  std::uint64_t type = 0;
  std::vector<std::uint64_t> waits_for;
  std::map<std::string, std::int64_t, std::less<>> numbers;
  std::string group;
};

/// Where a file is read, for messages.
struct Place {
  const std::string& file;
  std::size_t node = 0;

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(fmt::format("{}, node {}: {}", file, node, what));
  }
  template <class Value>
  Value expect(std::optional<Value> read) const {
    if (!read) fail("the file is damaged or cut short here; write it again");
    return *std::move(read);
  }
};

void read_attribute(Node& node, std::string_view bytes, const Place& place) {
  std::string name;
  std::optional<std::int64_t> number;
  std::string text;
  for (ProtobufReader reader(bytes); !reader.at_end();) {
    const ProtobufField field = place.expect(reader.field());
    const bool zigzag =
        field.number == chakra::kAttributeSint32 || field.number == chakra::kAttributeSint64;
    if (field.number == chakra::kAttributeName)
      name = field.bytes;
    else if (field.number == chakra::kAttributeString)
      text = field.bytes;
    else if (!field.has_bytes)
      number = static_cast<std::int64_t>(zigzag ? (field.integer >> 1) ^ (0 - (field.integer & 1))
                                                : field.integer);
  }
  if (name == "pg_name") node.group = text;
  if (number) node.numbers.insert_or_assign(std::move(name), *number);
}

/// Reads ids that are packed into one field, or one of several fields.
void read_dependencies(Node& node, const ProtobufField& field, const Place& place) {
  if (!field.has_bytes) return node.waits_for.push_back(field.integer);
  for (ProtobufReader reader(field.bytes); !reader.at_end();)
    node.waits_for.push_back(place.expect(reader.varint()));
}

Node read_node(std::string_view bytes, const Place& place) {
  Node node;
  for (ProtobufReader reader(bytes); !reader.at_end();) {
    const ProtobufField field = place.expect(reader.field());
    switch (field.number) {
      case chakra::kNodeId: node.id = field.integer; break;
      case chakra::kNodeName: node.name = field.bytes; break;
      case chakra::kNodeType: node.type = field.integer; break;
      case chakra::kControlDependencies:
      case chakra::kDataDependencies: read_dependencies(node, field, place); break;
      case chakra::kNodeAttribute: read_attribute(node, field.bytes, place); break;
      default: break;
    }
  }
  return node;
}

std::int64_t expect_number(const Node& node, std::string_view name, const Place& place) {
  const auto found = node.numbers.find(name);
  if (found == node.numbers.end())
    place.fail(fmt::format("{} has no attribute {}", quote(node.name), name));
  return found->second;
}

WorkloadJob make_job(const Node& node, std::int64_t rank, const Place& place) {
  WorkloadJob job;
  job.name = fmt::format("{} (node {})", quote(node.name), node.id);
  if (node.type == chakra::kCollectiveNode) {
    job.kind = WorkloadKind::kCollective;
    job.group = node.group;
    job.collective = expect_number(node, "comm_type", place);
    job.bytes = expect_number(node, "comm_size", place);
  }
  if (node.type != chakra::kSendNode && node.type != chakra::kReceiveNode) return job;
  const bool sends = node.type == chakra::kSendNode;
  job.kind = sends ? WorkloadKind::kSend : WorkloadKind::kReceive;
  job.peer = expect_number(node, sends ? "comm_dst" : "comm_src", place);
  job.tag = expect_number(node, "comm_tag", place);
  job.bytes = expect_number(node, "comm_size", place);
  const auto own = node.numbers.find(sends ? "comm_src" : "comm_dst");
  if (own != node.numbers.end() && own->second != rank)
    place.fail(fmt::format("{} is of rank {}, but the file is that of rank {}", quote(node.name),
                           own->second, rank));
  return job;
}

std::vector<WorkloadJob> read_rank(const ChakraFile& file, std::int64_t rank) {
  ProtobufReader reader(file.content);
  Place place{file.path};
  place.expect(reader.with_length());  // the GlobalMetadata
  std::vector<WorkloadJob> jobs;
  std::vector<std::vector<std::uint64_t>> waits_for;
  std::unordered_map<std::uint64_t, std::uint32_t> job_of;
  for (; !reader.at_end(); ++place.node) {
    Node node = read_node(place.expect(reader.with_length()), place);
    if (!job_of.emplace(node.id, static_cast<std::uint32_t>(jobs.size())).second)
      place.fail(fmt::format("the id {} is there a second time", node.id));
    jobs.push_back(make_job(node, rank, place));
    waits_for.push_back(std::move(node.waits_for));
  }
  for (std::size_t at = 0; at < jobs.size(); ++at)
    for (const std::uint64_t id : waits_for[at]) {
      const auto found = job_of.find(id);
      if (found == job_of.end())
        Place{file.path, at}.fail(fmt::format(
            "{} waits for the id {}, which no node of this file has", jobs[at].name, id));
      jobs[at].waits_for.push_back(found->second);
    }
  return jobs;
}

/// The PREFIX of "PREFIX.3.et", and its rank; none for other names.
std::optional<std::pair<std::string, std::int64_t>> split_name(const std::string& path) {
  if (!path.ends_with(".et")) return std::nullopt;
  const std::size_t end = path.size() - 3;
  const std::size_t dot = path.rfind('.', end - 1);
  if (end == 0 || dot == path.npos) return std::nullopt;
  std::int64_t rank = 0;
  const auto read = std::from_chars(path.data() + dot + 1, path.data() + end, rank);
  if (read.ec != std::errc() || read.ptr != path.data() + end || rank < 0) return std::nullopt;
  return std::pair{path.substr(0, dot), rank};
}

}  // namespace

bool is_chakra_name(const std::string& path) { return split_name(path).has_value(); }

Workload parse_chakra(const std::vector<ChakraFile>& files) {
  Workload workload;
  workload.format = "chakra";
  workload.ranks.resize(files.size());
  std::vector<char> is_there(files.size(), 0);
  for (const ChakraFile& file : files) {
    const auto name = split_name(file.path);
    if (!name) throw Error(file.path + ": the name says no rank; PREFIX.0.et is that of rank 0");
    if (workload.name.empty()) workload.name = name->first;
    if (workload.name != name->first)
      throw Error(fmt::format("{} and {} are of different sets; check one set at a time",
                              workload.name, name->first));
    const auto rank = static_cast<std::size_t>(name->second);
    if (rank >= files.size() || is_there[rank])
      throw Error(
          fmt::format("{}: {} of {} given; give those of ranks 0 to the last, as in {}.*.et",
                      file.path, counted(std::ssize(files), "file"), name->first, name->first));
    is_there[rank] = 1;
    workload.ranks[rank] = read_rank(file, name->second);
  }
  return workload;
}

}  // namespace bubblescope::traces
