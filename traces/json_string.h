// JSON strings and numbers for the writers that put their json together by hand, for speed.
#pragma once

#include <string>
#include <string_view>

namespace bubblescope {

/// The text in quotes, with quotes, backslashes and control characters escaped; what is not UTF-8
/// becomes U+FFFD, so that the result is always valid json.
std::string json_string(std::string_view text);

/// The shortest form that reads back as the same double, always with a point; null where it is not
/// finite, for which json has no number.
std::string json_number(double value);

}  // namespace bubblescope
