// Collects the events of a Chrome trace that matter, as they are read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "traces/measured/chrome_events.h"
#include "traces/measured/read_event.h"

namespace bubblescope::traces {

class EventCollector {
 public:
  /// Collects into `found`, which outlives this.
  EventCollector(const std::string& file, NameMatcher& names, ChromeEvents& found)
      : file_(file), names_(names), found_(found) {}

  /// Adds a whole event, from which texts are moved. Throws Error if it has a bad time.
  void add(ReadEvent& event);

  /// Ends the events. Their times are relative to the base, which may differ between the files of a
  /// job.
  void finish(Nanos base);

 private:
  /// A slice that has begun.
  struct OpenSlice {
    ChromeSlice slice;
    std::optional<Nanos> start;  ///< none where its event states none
  };

  /// The list that keeps a slice which is not an op.
  enum class OtherPlace : std::uint8_t { kNowhere, kParts, kOthers };

  std::uint32_t thread_of(const ReadEvent& event);
  void keep_other_slice(ReadEvent& event, OtherPlace place);
  void keep_other(const ChromeSlice& slice, OtherPlace place);
  void record_activity(const ReadEvent& event, Activity activity, std::int64_t number,
                       Nanos duration);
  void add_number(const ReadEvent& event);
  void note_process(const ReadEvent& event);
  void take_metadata(const ReadEvent& event);
  void note_activity(const ReadEvent& event);
  bool is_op(const ChromeSlice& slice);
  bool may_matter(const ChromeSlice& slice);
  bool take_step(const ReadEvent& event);
  void record_step(const ChromeSlice& slice, std::optional<std::int64_t> number);
  OtherPlace find_other_place(const ChromeSlice& slice);
  void count_left_out(const ChromeSlice& slice);
  void take_other(const ChromeSlice& slice, bool is_timed);
  void finish_slice(ReadEvent& event);
  void begin_slice(const ReadEvent& event);
  void end_slice(const ReadEvent& event);
  void keep(const ReadEvent& event, ChromeSlice slice);
  void expect_room(std::size_t kept, const char* what) const;
  void apply_late_rules();
  bool apply_late_rule(ChromeSlice& slice);
  Nanos timestamp_of(const ReadEvent& event) const;
  Nanos duration_of(const ReadEvent& event) const;
  Nanos time_in(const ReadEvent& event, const std::optional<Nanos>& time, const char* key) const;

  const std::string& file_;
  NameMatcher& names_;
  ChromeEvents& found_;
  std::map<std::pair<std::string, std::string>, std::uint32_t> threads_;
  std::map<std::uint32_t, std::vector<OpenSlice>> open_;  ///< begun on each thread
  std::size_t open_count_ = 0;
  std::uint32_t last_thread_ = 0;
  RunningNumbers* numbers_ = nullptr;  ///< of the process `numbered_`
  std::string numbered_;
  std::string profiled_;                             ///< the process that was noted last
  std::map<std::string, std::int64_t> ruled_steps_;  ///< by process: without a number of their own
};

}  // namespace bubblescope::traces
