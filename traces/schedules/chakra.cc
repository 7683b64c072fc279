// Chakra execution traces, for ASTRA-sim: `convert --to chakra -o PREFIX` writes PREFIX.0.et,
// PREFIX.1.et and so on, one per rank, which is what --workload-configuration=PREFIX reads.
//
// A file is a GlobalMetadata followed by Nodes, each preceded by its length (schema 0.0.4,
// schema/protobuf/et_def.proto of mlcommons/chakra). A compute op is a COMP_NODE; a message is a
// COMM_SEND_NODE on one rank and a COMM_RECV_NODE with the same tag on the other. Chakra's
// durations are whole microseconds; the attribute duration_ns is exact, and latency_ns of a send is
// the simulated time of the message, for which ASTRA-sim uses its own network model. Both are our
// additions, which other readers skip.
#include "sim/ir/error.h"
#include "traces/files/protobuf.h"
#include "traces/schedules/rank_jobs.h"

namespace bubblescope::traces {

namespace {

// Field numbers of et_def.proto.
constexpr std::uint32_t kMetadataVersion = 1;
constexpr std::uint32_t kMetadataAttribute = 2;
constexpr std::uint32_t kNodeId = 1;
constexpr std::uint32_t kNodeName = 2;
constexpr std::uint32_t kNodeType = 3;
constexpr std::uint32_t kNodeDataDependencies = 5;
constexpr std::uint32_t kNodeDurationMicros = 7;
constexpr std::uint32_t kNodeAttribute = 10;
constexpr std::uint32_t kAttributeName = 1;
constexpr std::uint32_t kAttributeInt32 = 7;
constexpr std::uint32_t kAttributeInt64 = 9;
constexpr std::uint32_t kAttributeUint64 = 13;
constexpr std::uint32_t kAttributeBool = 27;
constexpr std::uint32_t kAttributeString = 29;

// Node types of et_def.proto.
constexpr std::uint64_t kComputeNode = 4;
constexpr std::uint64_t kSendNode = 5;
constexpr std::uint64_t kReceiveNode = 6;

constexpr std::uint64_t kMessageBytes = 1;

ProtobufMessage attribute(std::string_view name, std::uint32_t kind, std::uint64_t value) {
  ProtobufMessage message;
  message.text(kAttributeName, name).integer(kind, value);
  return message;
}

std::uint64_t type_of(JobKind kind) {
  switch (kind) {
    case JobKind::kWork:
    case JobKind::kGap: return kComputeNode;
    case JobKind::kSend: return kSendNode;
    case JobKind::kReceive: return kReceiveNode;
  }
  return kComputeNode;
}

std::string name_of(const RankJob& job) {
  const char* const prefix = job.kind == JobKind::kReceive ? "receive "
                             : job.kind == JobKind::kGap   ? "gap before "
                                                           : "";
  return prefix + to_string(job.op);
}

void add_message_attributes(ProtobufMessage& node, const RankJob& job, std::size_t rank) {
  const bool sends = job.kind == JobKind::kSend;
  const auto peer = static_cast<std::uint64_t>(job.peer);
  node.message(kNodeAttribute, attribute("comm_size", kAttributeInt64, kMessageBytes))
      .message(kNodeAttribute, attribute("comm_src", kAttributeInt32, sends ? rank : peer))
      .message(kNodeAttribute, attribute("comm_dst", kAttributeInt32, sends ? peer : rank))
      .message(kNodeAttribute, attribute("comm_tag", kAttributeInt32, job.tag))
      .message(kNodeAttribute,
               attribute("latency_ns", kAttributeUint64, static_cast<std::uint64_t>(job.duration)));
}

ProtobufMessage node_of(const RankJob& job, std::size_t id, std::size_t rank) {
  ProtobufMessage node;
  node.integer(kNodeId, id).text(kNodeName, name_of(job)).integer(kNodeType, type_of(job.kind));
  const std::vector<std::uint64_t> waits(job.waits_for.begin(), job.waits_for.end());
  node.integers(kNodeDataDependencies, waits);
  const auto nanos = static_cast<std::uint64_t>(job.duration);
  if (!is_message(job.kind)) node.integer(kNodeDurationMicros, (nanos + 500) / 1000);
  node.message(kNodeAttribute, attribute("is_cpu_op", kAttributeBool, 0));
  if (!is_message(job.kind))
    node.message(kNodeAttribute, attribute("duration_ns", kAttributeUint64, nanos));
  else
    add_message_attributes(node, job, rank);
  return node;
}

std::vector<FilePart> write_chakra(const PricedSchedule& priced) {
  const RankJobs ranks = make_rank_jobs(priced, "chakra");
  ProtobufMessage schedule;
  schedule.text(kAttributeName, "schedule").text(kAttributeString, priced.schedule->name);
  ProtobufMessage metadata;
  metadata.text(kMetadataVersion, "0.0.4").message(kMetadataAttribute, schedule);
  std::vector<FilePart> parts;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    FilePart part{"." + std::to_string(rank) + ".et", with_length(metadata)};
    for (std::size_t id = 0; id < ranks[rank].size(); ++id)
      part.content += with_length(node_of(ranks[rank][id], id, rank));
    parts.push_back(std::move(part));
  }
  return parts;
}

const Registrar<ScheduleFormat> chakra_registrar{
    {"chakra",
     {"et"},
     "Chakra execution traces with costs, a file per rank, for ASTRA-sim",
     {},
     {},
     {},
     true,
     write_chakra}};

}  // namespace

}  // namespace bubblescope::traces
