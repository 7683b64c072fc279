// Writes moves of sends before those of receives, as they are printed.
#include "tools/commands/suggestion_json.h"

namespace bubblescope::tools {

namespace {

void write_move(traces::JsonWriter& json, const MovedSend& move) {
  json.begin_object().member("rank", move.rank).member("post", to_string(move.send));
  json.member("after", to_string(move.producer)).end_object();
}

void write_move(traces::JsonWriter& json, const MovedReceive& move) {
  json.begin_object().member("rank", move.rank).member("post", to_string(move.receive));
  json.key("before");
  move.before ? json.value(to_string(*move.before)) : json.null();
  json.member("occurrence", move.occurrence).end_object();
}

}  // namespace

void write_suggestion(traces::JsonWriter& json, const std::optional<ReceiveSuggestion>& receives,
                      const std::optional<SendSuggestion>& sends) {
  if (!receives && !sends) return;
  const std::optional<ReceiveSuggestion>& last = sends ? sends->receives : receives;
  json.member("suggestion", sends ? to_string(*sends) : to_string(*receives));
  json.key("suggested_moves").begin_array();
  if (sends)
    for (const MovedSend& move : sends->moves) write_move(json, move);
  if (last)
    for (const MovedReceive& move : last->moves) write_move(json, move);
  json.end_array();
  if (last) json.member("suggested_makespan_ns", last->makespan);
}

}  // namespace bubblescope::tools
