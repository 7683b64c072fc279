// Calls from Python into the library: without the GIL, messages as warnings, errors as exceptions.
#pragma once

#include <nanobind/nanobind.h>

#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "sim/ir/error.h"
#include "tools/errors.h"
#include "tools/print.h"
#include "traces/files/input_limit.h"

namespace bubblescope::tools {

/// Raises every message as a UserWarning, without its "bubblescope: ". Throws nanobind's exception
/// where the user's filters make an error of a warning.
void warn(const std::string& messages);

/// Throws the exception of `bubblescope.errors` for an Error; `messages`, which may hold a drawing,
/// become its details.
[[noreturn]] void raise_in_python(const Error& error, const std::string& messages);

/// Throws KeyboardInterrupt after Ctrl-C. Takes the GIL.
void expect_no_signal();

/// Runs `work` without the GIL and returns its result. `work` is passed what is printed meanwhile.
template <class Work>
auto call_library_with_output(Work&& work) {
  PrintCapture capture;
  const traces::InputLimitScope limit;  // a call's own `max_input` ends with it
  std::optional<decltype(work(capture))> result;
  std::optional<Error> failed;
  {
    const nanobind::gil_scoped_release release;
    try {
      result.emplace(work(capture));
    } catch (const Error& error) {
      failed.emplace(error);
    } catch (const nanobind::python_error&) {
      throw;  // raised by Python, such as KeyboardInterrupt
    } catch (const std::exception& error) {
      failed.emplace(to_error(error));
    }
  }
  if (failed) raise_in_python(*failed, capture.messages);
  warn(capture.messages);
  return *std::move(result);
}

/// The same for work that prints no results.
template <class Work>
auto call_library(Work&& work) {
  return call_library_with_output([&](const PrintCapture&) { return work(); });
}

}  // namespace bubblescope::tools
