// A digest of 64 bits over bytes. It detects accidents, such as a file that was cut, and not
// attacks. A change within one aligned word of eight bytes always changes it.
//
//   digest("abc")                    one value for all bytes
//   digest("c", digest("ab"))        continues: another value than digest("abc")
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace bubblescope::inline sim {

/// `before` is the digest of what precedes the bytes. The same on all machines of one byte order.
std::uint64_t digest(std::string_view bytes, std::uint64_t before = 0);

/// Returns the digest of the bytes of a vector's or an array's numbers.
template <class Values>
std::uint64_t digest_values(const Values& values, std::uint64_t before = 0) {
  using Element = typename Values::value_type;
  static_assert(std::has_unique_object_representations_v<Element> ||
                std::is_same_v<Element, float>);
  return digest({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Element)},
                before);
}

/// Returns the digest as 16 hexadecimal digits.
std::string digest_text(std::uint64_t digest);

}  // namespace bubblescope::inline sim
