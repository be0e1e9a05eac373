-- SPDX-License-Identifier: BSD-2-Clause
-- haproxy.lua - HAProxy asks kvroute-pick for a server, and reports the end of
-- each request; for the lines of haproxy.cfg. Responses in one piece are learned
-- from; streams, which Lua does not see, count as load for their usual time.
local door, ended, ended_most = "http://127.0.0.1:9080/v1/", {}, 4096

local function post(path, headers, body)
	local done, answer = pcall(function()
		return core.httpclient():post{ url = door .. path, body = body,
		    headers = headers, timeout = 2000 }
	end)
	return done and answer or {}
end

-- An answer with Retry-After is the picker's, and no error of HAProxy.
local function refuse(txn, answer)
	local again = (answer.headers or {})["retry-after"]
	if not again or (answer.status ~= 429 and answer.status ~= 503) then
		return
	end
	local reply = txn:reply{ status = answer.status, body = answer.body }
	reply:add_header("retry-after", again[0])
	reply:add_header("content-type", "application/json")
	txn:done(reply)
end

core.register_action("kvroute", { "http-req" }, function(txn)
	local headers = { ["x-kvroute-path"] = { txn.f:path() } }
	for name, values in pairs(txn.http:req_get_headers()) do
		if not name:find("^x%-kvroute%-") and name ~= "host" and
		    name ~= "content-length" and name ~= "transfer-encoding" then
			headers[name] = { values[0] }
		end
	end
	local answer = post("select", headers, txn.f:req_body() or "")
	refuse(txn, answer)
	local choice = answer.body or ""
	txn:set_var("txn.kvroute", choice:match('"targets":%["([^"]+)"'))
	txn:set_var("txn.call", choice:match('"call":"(%x+)"'))
	for name, value in choice:gmatch('"header":"([^":]+): ?([^"]*)"') do
		txn.http:req_del_header(name)
		if value ~= "" then txn.http:req_add_header(name, value) end
	end
end)

core.register_action("kvroute_end", { "http-res" }, function(txn)
	local type = txn.f:res_hdr("content-type") or ""
	local server, status = txn.f:srv_name(), txn.f:status()
	local seen = status >= 400 or type:find("json") or
	    server ~= txn:get_var("txn.kvroute")
	if #ended >= ended_most then return end
	table.insert(ended, { "calls/" .. txn:get_var("txn.call") .. "/end", {
	    ["content-type"] = { type }, ["x-kvroute-served"] = { server },
	    ["x-kvroute-status"] = { tostring(status) },
	    ["x-kvroute-how"] = { seen and "whole" or "not_seen" } },
	    type:find("json") and txn.f:res_body() or "" })
end)

core.register_task(function()
	while true do
		local e = table.remove(ended, 1)
		if e then post(e[1], e[2], e[3]) else core.msleep(5) end
	end
end)
