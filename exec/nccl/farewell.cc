// Waiting for the speaker.
#include "exec/nccl/farewell.h"

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

}  // namespace bubblescope
