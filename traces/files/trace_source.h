// The origin of a trace: the name of its format, and what recordings in that format are like.
#pragma once

#include <string>

namespace bubblescope::traces {

/// The name of timed steps that were written as csv and read back.
inline constexpr const char* kCsvSource = "csv";

/// The reader of a format says what holds for it.
struct TraceSource {
  std::string name = {};  ///< "kineto", "nsys", "chrome"
  /// Ranges may state the steps of the ops within them (ObservedOp::mark), on all ranks or on some.
  bool may_mark_steps = false;
  /// Every rank has a recording of its own, which may begin at another step.
  bool may_begin_apart = false;
  /// All messages were sent. Elsewhere those that do not state their stage and micro-batch may be
  /// calls that send nothing, as those of Megatron-LM's last stage are.
  bool has_only_sent_messages = false;
  /// Ops and messages without a length took no time; elsewhere their times were lost.
  bool has_true_zeros = false;
  /// Every file numbers its processes anew, so that the same number says nothing across files.
  bool numbers_files_apart = false;
  /// Activities are slices of any purpose, as initialization or an evaluation, which need not be
  /// part of a step.
  bool has_any_slices = false;
  /// Times are microseconds by the format, and programs may write another unit.
  bool has_micros = false;
};

}  // namespace bubblescope::traces
