// One event of a Chrome trace while it is being read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "traces/measured/chrome_events.h"

namespace bubblescope::traces {

/// The fields of the event that is being read.
struct ReadEvent {
  ChromeSlice slice;
  std::string phase;
  std::string pid;
  std::string tid;
  std::string given_name;                  ///< args.name, of metadata
  std::string group;                       ///< the description of a collective's process group
  std::string group_ranks;                 ///< of the group, as text: "[0, 1]"
  std::optional<std::int64_t> sort_index;  ///< of a process, in metadata
  std::optional<std::int64_t> peer;        ///< of a send or a receive: its place in the group
  std::int64_t correlation = 0;
  std::int64_t flow = kNoNumber;
  std::optional<Nanos> start;
  std::optional<Nanos> duration;
  std::string bad_time;  ///< the text of a time that does not fit

  /// Keeps the memory of the texts for the next event.
  void clear() {
    for (std::string* text : {&slice.name, &slice.category, &slice.op, &phase, &pid, &tid,
                              &given_name, &group, &group_ranks, &bad_time})
      text->clear();
    for (std::optional<std::int64_t>* number :
         {&slice.step, &slice.microbatch, &slice.chunk, &slice.stage, &slice.pp_rank, &slice.rank,
          &slice.replica, &slice.tensor, &slice.number, &sort_index, &peer})
      number->reset();
    slice.arguments.clear();
    correlation = 0;
    flow = kNoNumber;
    start.reset();
    duration.reset();
  }

  /// Returns the number that identifies an event of this activity.
  std::int64_t number_of(Activity activity) const;
};

}  // namespace bubblescope::traces
