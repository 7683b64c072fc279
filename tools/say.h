// Prints results to stdout and messages to stderr, both as text that no terminal acts on.
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace bubblescope {

/// Prints results. Control characters become escapes, but for the colours that our own drawings
/// have. That stdout could not be written is found when it is flushed at the end.
void show_text(std::string_view text);

/// Prints a message, "bubblescope: ..." where it is a warning. Where stderr cannot be written
/// nothing happens: no file is left unwritten because nobody listens.
void say_text(std::string_view text);

/// The same of a drawing of ours, however large.
void say_drawing(std::string_view text);

/// Draws the progress of a long command on a terminal, escapes and all.
void draw_progress(std::string_view text);

template <class... Values>
void show(fmt::format_string<Values...> format, Values&&... values) {
  show_text(fmt::format(format, std::forward<Values>(values)...));
}

template <class... Values>
void say(fmt::format_string<Values...> format, Values&&... values) {
  say_text(fmt::format(format, std::forward<Values>(values)...));
}

}  // namespace bubblescope
