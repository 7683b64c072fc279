// Classifies events by their names.
#include "traces/measured/profiled_event.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

#include "traces/measured/activity_names.h"
#include "traces/measured/collective_names.h"

namespace bubblescope::traces {

namespace {

Activity classify_work(std::string_view category, std::string_view name) {
  if (category != "kernel") return Activity::kTransfer;
  if (!name.starts_with("nccl")) return Activity::kKernel;
  return name.find("SendRecv") != name.npos ? Activity::kMessageKernel : Activity::kCollective;
}

std::optional<Activity> classify_call(std::string_view name) {
  const auto has = [&](std::string_view part) { return name.find(part) != name.npos; };
  if (name.starts_with("autograd::engine::evaluate_function")) return Activity::kAutograd;
  if (name.starts_with("c10d::") && has("send")) return Activity::kSend;
  if (name.starts_with("c10d::") && has("recv")) return Activity::kReceive;
  if (name.starts_with("c10d::barrier")) return Activity::kBarrier;
  // The buffer of a message is allocated like any other tensor, right before its receive.
  if (name.starts_with("c10d::") || name.starts_with("aten::empty")) return {};
  return Activity::kCall;
}

std::optional<Activity> classify_annotation(std::string_view name) {
  if (name.starts_with(kStepMark)) return Activity::kStep;
  if (name.starts_with("gloo:recv")) return Activity::kPendingReceive;
  if (name.starts_with("gloo:") && classify_collective(name) != CollectiveKind::kOther)
    return Activity::kHostCollective;
  if (name.starts_with("Optimizer.")) return Activity::kOptimizer;
  if (name.starts_with("enumerate(DataLoader)")) return Activity::kDataLoader;
  if (is_loading_data(name)) return Activity::kNamedLoading;
  if (is_outer_activity(name) && !is_named_like_collective(name)) return Activity::kNamedUpdate;
  return {};
}

/// Returns the letters of a text in lower case, and a blank for everything else.
std::string words_of(std::string_view text) {
  std::string words = " ";
  for (const char sign : text)
    words += std::isalpha(static_cast<unsigned char>(sign)) != 0
                 ? static_cast<char>(std::tolower(static_cast<unsigned char>(sign)))
                 : ' ';
  return words + " ";
}

template <std::size_t N>
bool has_word(const std::string& words, const std::array<std::string_view, N>& wanted) {
  return std::any_of(wanted.begin(), wanted.end(),
                     [&](std::string_view word) { return words.find(word) != words.npos; });
}

}  // namespace

std::optional<Activity> classify_activity(std::string_view category, std::string_view name) {
  const auto has = [&](std::string_view part) { return name.find(part) != name.npos; };
  if (category == "cpu_op") return classify_call(name);
  if (category == "user_annotation") return classify_annotation(name);
  if (category == "kernel" || category == "gpu_memcpy" || category == "gpu_memset")
    return classify_work(category, name);
  if (category == "cuda_runtime" || category == "cuda_driver") {
    if (has("Memcpy") || has("Memset")) return Activity::kCopyCall;
    if (has("Launch") && !has("HostFunc")) return Activity::kLaunch;  // those run on the host
  }
  return {};
}

CollectiveGroup classify_group(std::string_view description) {
  constexpr std::array<std::string_view, 5> kReplicas{" dp ", " data ", "fsdp ", " replicate ",
                                                      " shard "};
  constexpr std::array<std::string_view, 9> kOfOp{
      " tp ", " tensor ", " cp ", " context ", " ep ", " expert ", " etp ", " sp ", " sequence "};
  const std::string words = words_of(description);
  // Groups of both kinds, such as data with context, reduce gradients.
  if (has_word(words, kReplicas)) return CollectiveGroup::kOfReplicas;
  return has_word(words, kOfOp) ? CollectiveGroup::kOfOp : CollectiveGroup::kUnknown;
}

bool loads_data(Activity activity) {
  return activity == Activity::kDataLoader || activity == Activity::kNamedLoading;
}

bool is_on_device(Activity activity) {
  return activity == Activity::kKernel || activity == Activity::kTransfer ||
         activity == Activity::kCollective || activity == Activity::kMessageKernel;
}

}  // namespace bubblescope::traces
