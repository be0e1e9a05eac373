-- SPDX-License-Identifier: BSD-2-Clause
-- conformance.lua - tests/http/conformance.jsonl by LuaJIT's FFI, with the
-- declarations of the header as examples/kvroute.lua reads them. Prints
-- "passed failed" and the differences.
local ffi, cjson = require "ffi", require "cjson"

local c = assert(io.open("include/kvroute_http.h")):read("*a")
c = c:gsub("/%*.-%*/", ""):gsub("#ifdef __cplusplus.-#endif", "")
ffi.cdef((c:gsub("\n#[^\n]*", "")))
local lib = ffi.load(arg[1] .. "/libkvroute-http.so")

local u32, fact = ffi.new("uint32_t[1]"), ffi.new("int64_t[1]")
local at, cut = ffi.new("int64_t[1]"), ffi.new("uint64_t[1]")
local text, size = ffi.new("const char *[1]"), ffi.new("size_t[1]")
local here, failed, rows = "", 0, 0

local function is(what, got, want)
	if tostring(got) ~= tostring(want) then
		print(("%s, %s: '%s' instead of '%s'"):format(here, what,
		    tostring(got), tostring(want)))
		failed = failed + 1
	end
end

local function fact_of(call, which)
	assert(lib.kvh_fact(call, which, fact) == 0)
	return tonumber(fact[0])
end

local function word_of(call, which)
	assert(lib.kvh_word(call, which, text, size) == 0)
	return ffi.string(text[0], size[0])
end

local function target(call)
	assert(lib.kvh_target(call, 0, text, size, nil) == 0)
	return ffi.string(text[0], size[0])
end

local function edits(call, body)
	local parts, from, i, set = {}, 0, 0, {}
	while lib.kvh_edit(call, i, at, cut, text, size) == 0 do
		local t, offset = ffi.string(text[0], size[0]), tonumber(at[0])
		if offset == lib.KVH_HEADER then
			local name, value = t:match("^(.-): ?(.*)$")
			if value ~= "" then set[name] = value end
		else
			parts[#parts + 1] = body:sub(from + 1, offset) .. t
			from = offset + tonumber(cut[0])
		end
		i = i + 1
	end
	return table.concat(parts) .. body:sub(from + 1), set
end

local function pieces_of(response)
	if not response.hex then return response.pieces end
	return { (response.hex[1]:gsub("%x%x", function(x)
		return string.char(tonumber(x, 16))
	end)) }
end

local function pick(call, want)
	local e = lib.kvh_pick(call, -1, u32)
	for _, word in ipairs(want.fails or {}) do
		assert(e == 0)
		assert(lib.kvh_failed(call, lib["KVH_" .. word:upper()], 0, -1) == 0)
		e = lib.kvh_pick(call, -1, u32)
	end
	return e
end

local function look(call, want, targets, picked)
	local expect, tries = want.expect, #(want.fails or {}) + 1
	is("endpoint", word_of(call, lib.KVH_ENDPOINT_WORD), expect.endpoint)
	is("reason", word_of(call, lib.KVH_REASON_WORD), expect.reason)
	is("model", word_of(call, lib.KVH_MODEL), expect.model)
	is("stream", fact_of(call, lib.KVH_STREAM), expect.stream)
	is("targets", targets + tries - 1, expect.targets)
	is("tries", fact_of(call, lib.KVH_TRIES), tries)
	if expect.overlap then
		is("overlap", fact_of(call, lib.KVH_OVERLAP_TOKENS) > 0,
		    expect.overlap == 1)
	end
	if expect.target then is("target", target(call), expect.target) end
	if expect.same then is("same", target(call), picked[expect.same + 1]) end
end

local function send(call, want)
	local body = want.body or ""
	local sent, set = edits(call, body)
	if want.salt then
		is("salt", cjson.decode(sent).cache_salt, want.salt)
	else
		is("sent", sent, want.sent or body)
	end
	for name, value in pairs(want.set) do
		if value ~= "?" then is(name, set[name], value) end
		is("is " .. name .. " set", set[name] ~= nil, true)
		set[name] = nil
	end
	is("more headers", next(set), nil)
end

local function answer(call, want)
	local response, passed = want.response, {}
	local t, e = response.type, response.coding or ""
	assert(lib.kvh_response(call, response.status, t, #t, e, #e, "", 0, -1,
	    u32) == 0)
	local rewrites = u32[0] == 1
	is("rewrites", rewrites, want.rewrites == 1)
	local function add(room, write)
		local out = rewrites and ffi.new("char[?]", room) or nil
		size[0] = 0
		assert(write(out, rewrites and room or 0) == 0)
		passed[#passed + 1] = rewrites and ffi.string(out, size[0]) or ""
	end
	for _, piece in ipairs(pieces_of(response)) do
		add(#piece + lib.KVH_WRITE_MORE, function(out, room)
			return lib.kvh_response_data(call, piece, #piece, -1, out, room,
			    size)
		end)
	end
	add(lib.KVH_WRITE_MORE, function(out, room)
		return lib.kvh_end(call, lib["KVH_" .. (want["end"] or
		    "whole"):upper()], -1, out, room, size)
	end)
	if rewrites then is("passed", table.concat(passed), want.passed) end
	local report = want.report
	if report == cjson.null then
		is("report", fact_of(call, lib.KVH_REPORT_KIND), 0)
	else
		is("prompt", fact_of(call, lib.KVH_REPORT_PROMPT), report[1])
		is("cached", fact_of(call, lib.KVH_REPORT_CACHED), report[2])
		is("completion", fact_of(call, lib.KVH_REPORT_COMPLETION), report[3])
	end
	if want.started then
		is("started", fact_of(call, lib.KVH_STARTED), want.started)
	end
end

local function request(pool, want, picked)
	local out, method = ffi.new("struct kvh_call *[1]"), want.method or "POST"
	local path, body = want.path, want.body or ""
	assert(lib.kvh_begin(pool, method, #method, path, #path, -1, out) == 0)
	local call = out[0]
	for name, value in pairs(want.tell or {}) do
		assert(lib.kvh_tell(call, lib["KVH_TOLD_" .. name:upper()], value,
		    #value) == 0)
	end
	for _, h in ipairs(want.headers or {}) do
		assert(lib.kvh_header(call, h[1], #h[1], h[2], #h[2]) == 0)
	end
	assert(lib.kvh_body(call, body, #body) == 0)
	assert(lib.kvh_body_end(call, want.cut and 0 or 1) == 0)
	local e = pick(call, want)
	is("pick", e, want.error and lib["KVH_" .. want.error] or 0)
	if e == 0 then
		picked[#picked + 1] = target(call)
		look(call, want, u32[0], picked)
		send(call, want)
		answer(call, want)
	end
	lib.kvh_call_free(call)
end

for line in io.lines("tests/http/conformance.jsonl") do
	local row, picked = cjson.decode(line), {}
	local options, out = row.options or "", ffi.new("struct kvh *[1]")
	here, rows = row.name, rows + 1
	assert(lib.kvh_open("", 0, options, #options, nil, out) == 0)
	for name, facts in pairs(row.servers or { ["a:1"] = "", ["b:1"] = "" }) do
		assert(lib.kvh_server_put(out[0], name, #name, facts, #facts,
		    nil) == 0)
	end
	for _, want in ipairs(row.calls) do request(out[0], want, picked) end
	lib.kvh_free(out[0])
end
if rows < 40 then is("rows", rows, "40 or more") end
os.exit(failed == 0)
