// Recognizes groups by the words with which PyTorch's device meshes and Megatron-LM describe them.
#include "traces/measured/profile_place.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sim/ir/error.h"
#include "sim/ir/number.h"

namespace bubblescope::traces {

namespace {

/// Returns the words of "mesh_pp" or "TENSOR_MODEL_PARALLEL_GROUP", in lower case, separated by
/// blanks.
std::string words_of(const std::string& description) {
  std::string words = " ";
  for (const char letter : description)
    words += std::isalnum(static_cast<unsigned char>(letter)) != 0
                 ? static_cast<char>(std::tolower(static_cast<unsigned char>(letter)))
                 : ' ';
  return words + " ";
}

bool has_rank(const std::vector<std::int64_t>& ranks, std::int64_t rank) {
  return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}

/// The groups of this kind that contain `rank`. Groups over several kinds ("..._AND_...") do not
/// count.
std::vector<const ProcessGroup*> find_groups(const ChromeEvents& events, std::int64_t rank,
                                             const char* mesh, const char* megatron) {
  std::vector<const ProcessGroup*> found;
  for (const ProcessGroup& group : events.groups) {
    const std::string words = words_of(group.description);
    const bool is_kind = words.find(mesh) != words.npos || words.find(megatron) != words.npos;
    const bool is_mixed = words.find(" and ") != words.npos || words.find(" with ") != words.npos;
    if (is_kind && !is_mixed && has_rank(group.ranks, rank)) found.push_back(&group);
  }
  return found;
}

/// Null if it has none.
const ProcessGroup* find_tensor_group(const ChromeEvents& events, std::int64_t rank) {
  const auto groups = find_groups(events, rank, " tp ", " tensor model ");
  return groups.empty() ? nullptr : groups.front();
}

std::vector<const ProcessGroup*> find_data_groups(const ChromeEvents& events, std::int64_t rank) {
  return find_groups(events, rank, " dp ", " data parallel ");
}

/// A process that ran several layouts has data-parallel groups of each: one of a single rank says
/// nothing where there is another. Null without any.
const ProcessGroup* choose_data_group(const std::vector<const ProcessGroup*>& groups) {
  for (const ProcessGroup* group : groups)
    if (group->ranks.size() > 1) return group;
  return groups.empty() ? nullptr : groups.front();
}

/// Returns the ranks of "[0, 1, 2]"; empty for a list that was cut ("[0, 1, ...]").
std::vector<std::int64_t> parse_ranks(std::string_view text) {
  std::vector<std::int64_t> ranks;
  if (!text.starts_with('[') || !text.ends_with(']')) return {};
  text = text.substr(1, text.size() - 2);
  while (!text.empty()) {
    const std::string_view one = text.substr(0, text.find(','));
    const auto rank =
        parse_number<std::int64_t>(one.substr(std::min(one.find_first_not_of(' '), one.size())));
    if (!rank) return {};
    ranks.push_back(*rank);
    text.remove_prefix(std::min(text.size(), one.size() + 1));
  }
  return ranks;
}

/// The rank's pipeline: of several layouts, the one whose group sends the recorded messages.
const ProcessGroup* find_pipeline(const ChromeEvents& events, std::int64_t rank) {
  const auto groups = find_groups(events, rank, " pp ", " pipeline model ");
  for (const ProcessGroup* group : groups)
    for (const auto& [ranks, _] : events.peers)
      if (parse_ranks(ranks) == group->ranks) return group;
  return groups.empty() ? nullptr : groups.front();
}

/// Throws Error where the rank exchanges messages with others than its pipeline's, in a group that
/// contains the pipeline: that is another layout, whose pipeline has no group of its own. Rings of
/// context-parallel ranks have other groups.
void expect_peers_in(const ProcessGroup& pipeline, const ChromeEvents& events, std::int64_t rank,
                     const std::string& file) {
  for (const auto& [text, places] : events.peers) {
    const std::vector<std::int64_t> ranks = parse_ranks(text);
    const bool contains = std::all_of(pipeline.ranks.begin(), pipeline.ranks.end(),
                                      [&](std::int64_t member) { return has_rank(ranks, member); });
    for (const std::int64_t place : places) {
      if (!contains || place < 0 || place >= std::ssize(ranks)) continue;
      const std::int64_t peer = ranks[static_cast<std::size_t>(place)];
      if (!has_rank(pipeline.ranks, peer))
        throw Error(fmt::format(
            "{}: rank {} exchanges messages with rank {}, which is not in its pipeline's group "
            "'{}': the process has groups of several layouts, and nothing says which ranks this "
            "pipeline has; run each layout by processes of its own",
            file, rank, peer, pipeline.description));
    }
  }
}

/// Returns the ranks of the job that exchange messages with the profile's.
std::set<std::int64_t> find_partners(const ChromeEvents& events) {
  std::set<std::int64_t> partners;
  for (const auto& [text, places] : events.peers) {
    const std::vector<std::int64_t> ranks = parse_ranks(text);
    for (const std::int64_t place : places)
      if (place >= 0 && place < std::ssize(ranks))
        partners.insert(ranks[static_cast<std::size_t>(place)]);
  }
  return partners;
}

/// Returns a global rank. Throws Error for numbers beyond the devices of any job.
std::int32_t rank_of(std::int64_t value, const std::string& file) {
  constexpr std::int64_t kMaxGlobalRank = 1 << 24;
  if (value < 0 || value > kMaxGlobalRank)
    throw Error(
        fmt::format("{}: /distributedInfo has rank {}, but ranks are 0 to {}; correct it, or "
                    "leave the file out",
                    file, value, kMaxGlobalRank));
  return static_cast<std::int32_t>(value);
}

std::int32_t position(const ProcessGroup& group, std::int64_t rank) {
  return static_cast<std::int32_t>(std::find(group.ranks.begin(), group.ranks.end(), rank) -
                                   group.ranks.begin());
}

/// The number of pipelines of the job, at least: a rank's data-parallel peers are in as many. 0
/// without such a group.
std::int64_t count_replicas(const std::vector<const ProcessGroup*>& data_groups) {
  std::int64_t replicas = 0;
  for (const ProcessGroup* group : data_groups)
    replicas = std::max<std::int64_t>(replicas, std::ssize(group->ranks));
  return replicas;
}

/// The process whose calls or launches were recorded; events of a device have the device's number
/// instead.
std::string find_process(const ChromeEvents& events) {
  const auto call =
      std::find_if(events.profiled.begin(), events.profiled.end(), [](const ProfiledEvent& event) {
        return event.activity == Activity::kCall || event.activity == Activity::kAutograd ||
               event.activity == Activity::kLaunch;
      });
  return call == events.profiled.end() ? "" : events.threads[call->thread].process;
}

}  // namespace

ProfilePlace locate_in_job(const ChromeEvents& events, const std::string& file) {
  ProfilePlace place;
  if (!events.distributed_rank) return place;
  const std::int64_t rank = *events.distributed_rank;
  place.rank = rank_of(rank, file);
  place.process = find_process(events);
  const ProcessGroup* tensor = find_tensor_group(events, rank);
  if (tensor != nullptr) place.is_tensor_peer = position(*tensor, rank) > 0;
  const std::vector<const ProcessGroup*> data_groups = find_data_groups(events, rank);
  if (const ProcessGroup* data = choose_data_group(data_groups))
    place.data_rank = position(*data, rank);
  const ProcessGroup* pipeline = find_pipeline(events, rank);
  place.ranks = pipeline ? std::ssize(pipeline->ranks) : events.world_size.value_or(0);
  if (!pipeline) {
    for (const ProcessGroup& group : events.groups)
      if (has_rank(group.ranks, rank)) place.groups.push_back(group.ranks);
    place.partners = find_partners(events);
    return place;
  }
  expect_peers_in(*pipeline, events, rank, file);
  place.rank = position(*pipeline, rank);
  place.replicas = count_replicas(data_groups);
  // Without groups, the ranks outside of the pipeline are replicas, or share its ops.
  if (place.replicas == 0 && tensor == nullptr)
    place.outsiders = std::max<std::int64_t>(0, events.world_size.value_or(0) - place.ranks);
  for (const std::int64_t peer : pipeline->ranks) {
    const std::int32_t peer_rank = rank_of(peer, file);
    place.replica = std::min(place.replica.value_or(peer_rank), peer_rank);
  }
  return place;
}

Recorder make_recorder(const ProfilePlace& place, const std::string& host,
                       const std::string& file) {
  Recorder recorder;
  recorder.where = file;
  recorder.rank = place.rank;
  recorder.host = host;
  recorder.has_replica = recorder.is_by_job_rank = place.replica.has_value();
  recorder.data_rank = place.data_rank;
  recorder.peers = place.ranks;
  recorder.replicas = place.replicas;
  recorder.outsiders = place.outsiders;
  recorder.process = place.process;
  recorder.groups = place.groups;
  recorder.partners = place.partners;
  return recorder;
}

}  // namespace bubblescope::traces
