-- SPDX-License-Identifier: BSD-2-Clause
-- kvroute.lua - servers by libkvroute-http in nginx with lua-nginx-module, and
-- so in OpenResty, Kong or APISIX; kvroute-lua.conf calls it. All that differs
-- from ngx_http_upstream_kvroute_module: the whole body is read into memory.
local ffi = require "ffi"
local balancer = require "ngx.balancer"
local M, h, lib = {}, nil, nil
local call, u32 = nil, ffi.new("uint32_t[1]")
local at, cut = ffi.new("int64_t[1]"), ffi.new("uint64_t[1]")
local text, size = ffi.new("const char *[1]"), ffi.new("size_t[1]")

-- header: kvroute_http.h; region: a file, which all worker processes share;
-- options, and facts of servers by their address, as of kvroute-http(7)
function M.init(header, region, options, servers)
	local c = assert(io.open(header)):read("*a"):gsub("/%*.-%*/", "")
	ffi.cdef((c:gsub("#ifdef __cplusplus.-#endif", ""):gsub("\n#[^\n]*", "")))
	lib = ffi.load("kvroute-http")
	local pool, bad = ffi.new("struct kvh *[1]"), ffi.new("size_t[1]")
	local e = lib.kvh_open(region, #region, options, #options, bad, pool)
	assert(e == 0, options:sub(tonumber(bad[0]) + 1))
	h, call = pool[0], ffi.new("struct kvh_call *[1]")
	for name, facts in pairs(servers) do
		for _ = 1, 1000 do -- another process may hold the lock
			e = lib.kvh_server_put(h, name, #name, facts, #facts, bad)
			if e == 0 then break end
		end
		assert(e == 0, name)
	end
	assert(ngx.timer.every(1, function() lib.kvh_tick(h, -1, nil) end))
end

-- Tries another server after this one; false: there is none.
local function pick(kv)
	kv.picked = lib.kvh_pick(kv.call, -1, u32) == 0
	return kv.picked
end

-- The body's edits are in the order of their offsets.
local function edit(kv, body)
	local parts, from, i = {}, 0, 0
	while lib.kvh_edit(kv.call, i, at, cut, text, size) == 0 do
		local t, offset = ffi.string(text[0], size[0]), tonumber(at[0])
		if offset < 0 then
			local name, value = t:match("^(.-): ?(.*)$")
			ngx.req.set_header(name, value ~= "" and value or nil)
		else
			parts[#parts + 1] = body:sub(from + 1, offset) .. t
			from = offset + tonumber(cut[0])
		end
		i = i + 1
	end
	if #parts > 0 then
		ngx.req.set_body_data(table.concat(parts) .. body:sub(from + 1))
	end
end

function M.access()
	ngx.req.read_body()
	local method, path = ngx.req.get_method(), ngx.var.uri
	if lib.kvh_begin(h, method, #method, path, #path, -1, call) ~= 0 then
		return ngx.exit(500)
	end
	local kv = { call = ffi.gc(call[0], lib.kvh_call_free), tries = 0 }
	ngx.ctx.kvroute = kv
	for name, value in pairs(ngx.req.get_headers(0)) do
		for _, v in ipairs(type(value) == "table" and value or { value }) do
			v = tostring(v)
			lib.kvh_header(kv.call, name, #name, v, #v)
		end
	end
	local body = ngx.req.get_body_data() or ""
	lib.kvh_body(kv.call, body, #body)
	lib.kvh_body_end(kv.call, 1)
	if pick(kv) then return edit(kv, body) end
	ngx.header["retry-after"] = 1
	return ngx.exit(503)
end

function M.balancer()
	local kv, state, status = ngx.ctx.kvroute, balancer.get_last_failure()
	if kv.tries > 0 then -- 3: KVH_STATUS, 2: KVH_BROKE
		status = tonumber(status) or 0
		lib.kvh_failed(kv.call, state == "next" and 3 or 2, status, -1)
		if not pick(kv) then return ngx.exit(-3) end -- NGX_BUSY: status 502
	end
	kv.tries = kv.tries + 1
	if kv.tries < 3 then balancer.set_more_tries(1) end
	lib.kvh_target(kv.call, 0, text, size, nil)
	local host, port = ffi.string(text[0], size[0]):match("^%[?(.-)%]?:(%d+)$")
	assert(balancer.set_current_peer(host, tonumber(port)))
end

function M.header_filter()
	local kv = ngx.ctx.kvroute
	if not kv or not kv.picked then return end
	local t = ngx.header["content-type"] or ""
	local e = ngx.header["content-encoding"] or ""
	lib.kvh_response(kv.call, ngx.status, t, #t, e, #e, "", 0, -1, u32)
	kv.rewrites = u32[0] == 1
	if kv.rewrites then ngx.header["content-length"] = nil end
end

function M.body_filter()
	local kv, piece, last = ngx.ctx.kvroute, ngx.arg[1], ngx.arg[2]
	if not kv or not kv.picked or kv.ended then return end
	local room = kv.rewrites and #piece + lib.KVH_WRITE_MORE or 0
	local out = kv.rewrites and ffi.new("char[?]", room) or nil
	size[0] = 0
	lib.kvh_response_data(kv.call, piece, #piece, -1, out, room, size)
	local written = out and ffi.string(out, size[0])
	if last then
		kv.ended = lib.kvh_end(kv.call, 0, -1, out, room, size) == 0
		written = out and written .. ffi.string(out, size[0])
	end
	if out then ngx.arg[1] = written end
end

function M.log() -- without an end the client has left, or nothing was sent
	local kv = ngx.ctx.kvroute
	if not kv then return end
	if not kv.ended then
		lib.kvh_end(kv.call, kv.picked and 1 or 3, -1, nil, 0, nil)
	end
	lib.kvh_call_free(ffi.gc(kv.call, nil))
end

function M.status() -- for Prometheus
	local room = 1048576
	local out = ffi.new("char[?]", room)
	if lib.kvh_status(h, 0, -1, out, room, size) == 0 then
		ngx.print(ffi.string(out, math.min(room, tonumber(size[0]))))
	end
end

return M
