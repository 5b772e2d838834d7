// Whole files: read with a limit, write so that a reader sees the old content or the new, never a part.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace layline::base {

inline constexpr int64_t kDefaultFileLimitBytes = int64_t{1} << 30;

// The file's bytes. Throws InputError when it is missing, no regular file or pipe, unreadable, or larger than
// `limit_bytes`.
std::string read_file(const std::string& path, int64_t limit_bytes = kDefaultFileLimitBytes);

// Writes a temporary beside `path`, syncs it and renames it over `path`; a symbolic link is followed, a device or pipe
// (/dev/stdout) is written straight. Throws InputError when the place cannot be written, RunError when writing fails
// (full disk); the temporary is removed and the old file is untouched.
void write_file_atomically(const std::string& path, std::string_view content);
// The same of content in pieces, one behind the other: what is large need not be copied into one text.
void write_file_atomically(const std::string& path, std::span<const std::string_view> pieces);

// Writes all of `content` to an open file descriptor. Throws RunError.
void write_fully(int file_descriptor, std::string_view content, const std::string& path);

// Makes a file created or renamed in the folder of `path` survive a power failure.
void sync_folder_of(const std::string& path);

}  // namespace layline::base
