// Finds timers in single lines of a training log, whatever stands before them.
//
//   worker-3:     forward-compute ......: (310.02, 402.11)
//   |  head  |    |    name     |         |    value     |
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace bubblescope::traces {

struct TimerField {
  std::string_view head;   ///< what stands before it
  std::string_view name;   ///< empty for a rank's line
  std::string_view value;  ///< empty for the name above a list of ranks
  std::int32_t rank = 0;   ///< of a rank's line
  bool has_dots = false;   ///< as Megatron-LM writes after all names but long ones
};

/// Finds "forward-compute ......: (310.02, 402.11)", anywhere in the line.
std::optional<TimerField> find_range_field(std::string_view line);

/// Finds "forward-compute ......: 402.11", at the end of the line.
std::optional<TimerField> find_number_field(std::string_view line);

/// "forward-compute:", which the times of ranks follow.
std::optional<TimerField> find_name_field(std::string_view line);

/// Finds "rank  3: 402.11".
std::optional<TimerField> find_rank_field(std::string_view line);

/// "forward-compute ......: (310.02, 4": a timer whose value is lost, or is not a number. `value`
/// is the first word behind the name.
std::optional<TimerField> find_cut_field(std::string_view line);

/// Returns the number that follows a word: 20 of "iteration  20/ 100 |" and "steps: 20 loss";
/// nullopt without any.
std::optional<std::int64_t> find_count(std::string_view text, std::string_view word);

/// Where a line begins that counts iterations: "iteration  20/ 100 |"; nullopt elsewhere.
std::optional<std::size_t> find_iteration(std::string_view line);

/// Whether a time is whole: "402.1" and "40" may be the beginning of "402.11".
bool is_whole_time(std::string_view value);

/// Whether a time that is not whole is the beginning of one, with no other letter in it.
bool may_be_cut(std::string_view value);

/// The rank that printed timers: "[Rank 3]" or "rank=3", as DeepSpeed puts before them.
std::optional<std::int32_t> find_printing_rank(std::string_view head);

/// Whether DeepSpeed has a timer of this name: Megatron-LM's have dashes or blanks, no underscores.
bool is_name_of_deepspeed(std::string_view name);

/// Whether it is a timer of DeepSpeed's pipelines alone.
bool is_name_of_pipeline(std::string_view name);

/// A time that a log can have; nullopt for anything else.
std::optional<double> parse_time(std::string_view text);

/// Says that a text is none: "'nan' is not a time in milliseconds".
std::string describe_no_time(std::string_view text, std::string_view unit = "milliseconds");

/// Returns the text before the first space, or before the mark between two fields.
std::string_view first_word(std::string_view text);

}  // namespace bubblescope::traces
