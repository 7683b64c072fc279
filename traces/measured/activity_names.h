// Reads the purpose of activities from the words of their names, in any spelling: get_batch,
// getBatch, "get batch".
#pragma once

#include <string>
#include <string_view>

namespace bubblescope::traces {

/// Whether it loads a step's samples: "data loader", "get_batch".
bool is_loading_data(std::string_view name);

/// Whether it is work that a step has around its ops, as far as names are known: a collective, the
/// optimizer, loading data.
bool is_outer_activity(std::string_view name);

/// Whether it is a message or waiting, which leaves its rank idle: "recv_forward", "wait".
bool is_message_or_waiting(std::string_view name);

/// The name without its numbers: those of two steps differ in nothing else, nor do the files of a
/// job's ranks ("rank3.json.gz").
std::string without_digits(std::string_view name);

}  // namespace bubblescope::traces
