// Chakra execution traces: PREFIX.0.et, PREFIX.1.et and so on, one per rank, which is what
// ASTRA-sim reads with --workload-configuration=PREFIX.
//
// A file is a GlobalMetadata followed by Nodes, each preceded by its length (schema 0.0.4,
// schema/protobuf/et_def.proto of mlcommons/chakra). A compute op is a COMP_NODE; a message is a
// COMM_SEND_NODE on one rank and a COMM_RECV_NODE with the same tag on the other. Chakra's
// durations are whole microseconds; the attribute duration_ns is exact, and latency_ns of a send is
// the simulated time of the message, for which ASTRA-sim uses its own network model. Both are our
// additions, which other readers skip.
#include "sim/ir/error.h"
#include "traces/files/chakra_fields.h"
#include "traces/files/protobuf.h"
#include "traces/schedules/rank_jobs.h"

namespace bubblescope::traces {

namespace {

constexpr std::uint64_t kMessageBytes = 1;

ProtobufMessage attribute(std::string_view name, std::uint32_t kind, std::uint64_t value) {
  ProtobufMessage message;
  message.text(chakra::kAttributeName, name).integer(kind, value);
  return message;
}

std::uint64_t type_of(JobKind kind) {
  switch (kind) {
    case JobKind::kWork:
    case JobKind::kGap: return chakra::kComputeNode;
    case JobKind::kSend: return chakra::kSendNode;
    case JobKind::kReceive: return chakra::kReceiveNode;
  }
  return chakra::kComputeNode;
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
  node.message(chakra::kNodeAttribute,
               attribute("comm_size", chakra::kAttributeInt64, kMessageBytes))
      .message(chakra::kNodeAttribute,
               attribute("comm_src", chakra::kAttributeInt32, sends ? rank : peer))
      .message(chakra::kNodeAttribute,
               attribute("comm_dst", chakra::kAttributeInt32, sends ? peer : rank))
      .message(chakra::kNodeAttribute, attribute("comm_tag", chakra::kAttributeInt32, job.tag))
      .message(chakra::kNodeAttribute, attribute("latency_ns", chakra::kAttributeUint64,
                                                 static_cast<std::uint64_t>(job.duration)));
}

ProtobufMessage node_of(const RankJob& job, std::size_t id, std::size_t rank) {
  ProtobufMessage node;
  node.integer(chakra::kNodeId, id)
      .text(chakra::kNodeName, name_of(job))
      .integer(chakra::kNodeType, type_of(job.kind));
  const std::vector<std::uint64_t> waits(job.waits_for.begin(), job.waits_for.end());
  node.integers(chakra::kDataDependencies, waits);
  const auto nanos = static_cast<std::uint64_t>(job.duration);
  if (!is_message(job.kind)) node.integer(chakra::kDurationMicros, (nanos + 500) / 1000);
  node.message(chakra::kNodeAttribute, attribute("is_cpu_op", chakra::kAttributeBool, 0));
  if (!is_message(job.kind))
    node.message(chakra::kNodeAttribute, attribute("duration_ns", chakra::kAttributeUint64, nanos));
  else
    add_message_attributes(node, job, rank);
  return node;
}

std::vector<FilePart> write_chakra(const PricedSchedule& priced) {
  const RankJobs ranks = make_rank_jobs(priced, "chakra");
  ProtobufMessage schedule;
  schedule.text(chakra::kAttributeName, "schedule")
      .text(chakra::kAttributeString, priced.schedule->name);
  ProtobufMessage metadata;
  metadata.text(chakra::kMetadataVersion, "0.0.4").message(chakra::kMetadataAttribute, schedule);
  std::vector<FilePart> parts;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    FilePart part{"." + std::to_string(rank) + ".et", with_length(metadata)};
    for (std::size_t id = 0; id < ranks[rank].size(); ++id)
      part.content += with_length(node_of(ranks[rank][id], id, rank));
    parts.push_back(std::move(part));
  }
  return parts;
}

const Registrar<ScheduleFormat> chakra_registrar{[] {
  return ScheduleFormat{
      "chakra", {"et"},      "Chakra execution traces with costs, a file per rank, for ASTRA-sim",
      {},       {},          {},
      true,     write_chakra};
}};

}  // namespace

}  // namespace bubblescope::traces
