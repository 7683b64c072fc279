// Waiting for the speaker.
#include "exec/nccl/farewell.h"

#include <utility>

#include "exec/nccl/step_link.h"
#include "exec/waiting.h"

namespace bubblescope {

std::int32_t find_speaker(const ProcessLink& link) {
  std::int32_t speaker = 0;
  while (speaker != link.seat().rank && link.is_gone(speaker)) ++speaker;
  return speaker;
}

/// Without rank 0 nobody else is heard.
std::string say_farewell(ProcessLink& link, const Limits& limits) {
  Waiting waiting(limits);
  if (find_speaker(link) == link.seat().rank) {
    link.send_all(Line::kLeave, {});
    link.flush([&waiting] { return waiting.is_over(); });
    return "";
  }
  while (link.look(Line::kLeave).empty()) {
    if (link.is_gone(0)) return "rank 0 is gone: its process has died before all was done";
    if (find_speaker(link) == link.seat().rank) return "";
    if (!link.look(Line::kControl).empty()) waiting.renew();
    if (waiting.is_over())
      return "rank " + std::to_string(find_speaker(link)) +
             " does not answer: its process has died or hangs";
    link.wait();
  }
  return "";
}

Processes::Link as_processes(ProcessLink& link, const Limits& limits,
                             std::function<void(const std::string& lost)> at_end) {
  return {link.seat().rank,
          link.seat().count,
          [&link, limits](Blob own) { return StepLink(link, limits).share(std::move(own)); },
          [&link] { return find_speaker(link); },
          [&link, limits, at_end = std::move(at_end)] { at_end(say_farewell(link, limits)); },
          [&link] { show_life(link); }};
}

}  // namespace bubblescope
